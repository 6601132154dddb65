/// The addresses whose latest push failed, to tell when an address begins to fail or works again.
package struct FailingAddresses<Address: Hashable & Sendable>: Sendable {
    /// A change of an address's state.
    package enum Change: Sendable, Equatable {
        /// Its latest push failed, unlike the one before.
        case fails
        /// A push was accepted after others had failed.
        case worksAgain
    }

    /// The maximum number of addresses. Addresses of clients that are gone never succeed again, so
    /// a full set is emptied: those that still fail are then reported once more.
    private let addressesMax: Int
    private var failing: Set<Address> = []

    package init(addressesMax: Int = 10_000) {
        self.addressesMax = addressesMax
    }

    package var count: Int { failing.count }

    /// Records the end of a push; returns the change that it means, if any.
    package mutating func ended(at address: Address, isSent: Bool) -> Change? {
        if isSent { return failing.remove(address) == nil ? nil : .worksAgain }
        guard !failing.contains(address) else { return nil }
        if failing.count >= addressesMax { failing.removeAll() }
        failing.insert(address)
        return .fails
    }
}
