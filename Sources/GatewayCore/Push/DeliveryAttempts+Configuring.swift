/// The effect of a configuration change on a client's owed notifications.
extension DeliveryAttempts {
    /// Whether anything is withheld by a budget or a stop.
    package var isWithheld: Bool { addresses.contains { $0.withheldUntil > .min } }

    /// Sets whether the configuration allows pushes to an address.
    ///
    /// - Returns: Whether this changed.
    @discardableResult
    package mutating func setConfigured(_ id: UInt64, _ isConfigured: Bool) -> Bool {
        guard let index = addresses.firstIndex(where: { $0.id == id }),
            addresses[index].isConfigured != isConfigured
        else { return false }
        addresses[index].isConfigured = isConfigured
        return true
    }

    /// Allows pushes to an address again after a failure, a permanent rejection or quarantine,
    /// because the cause may have been fixed.
    ///
    /// - Returns: Whether there was one.
    package mutating func mended(_ id: UInt64) -> Bool {
        guard let index = addresses.firstIndex(where: { $0.id == id }),
            !addresses[index].isUsable || addresses[index].givenUp > 0
                || addresses[index].failures > 0
        else { return false }
        addresses[index].isUsable = true
        addresses[index].givenUp = 0
        recovered(id)
        return true
    }

    /// Makes the budget and the stops be checked again.
    package mutating func askAgain() {
        for index in addresses.indices { addresses[index].withheldUntil = .min }
    }
}
