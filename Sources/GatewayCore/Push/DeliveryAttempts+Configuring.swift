import WidgetModel

/// What a configuration that becomes another means for what a client is owed.
extension DeliveryAttempts {
    /// Whether anything is withheld by a budget or a stop.
    package var isWithheld: Bool { addresses.contains { $0.withheldUntil > .min } }

    /// The configuration lets an address be pushed to, or not.
    ///
    /// - Returns: Whether that is new.
    @discardableResult
    package mutating func setConfigured(_ id: UInt64, _ isConfigured: Bool) -> Bool {
        guard let index = addresses.firstIndex(where: { $0.id == id }),
            addresses[index].isConfigured != isConfigured
        else { return false }
        addresses[index].isConfigured = isConfigured
        return true
    }

    /// What was refused for good at an address, or had it left alone, may have been mended: it is
    /// pushed to again.
    ///
    /// - Returns: Whether anything was refused.
    package mutating func mended(_ id: UInt64) -> Bool {
        guard let index = addresses.firstIndex(where: { $0.id == id }),
            !addresses[index].isUsable || addresses[index].givenUp > 0
        else { return false }
        addresses[index].isUsable = true
        addresses[index].givenUp = 0
        return true
    }

    /// Budget and stops are asked anew.
    ///
    /// - Parameter delay: By how long what goes out then is spread, in milliseconds.
    package mutating func askAgain(after delay: Int64, now: Int64) {
        for index in addresses.indices { addresses[index].withheldUntil = .min }
        if delay > 0 { heldUntil = max(heldUntil, now.later(by: delay)) }
    }
}
