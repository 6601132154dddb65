import Synchronization

/// The most connections that a listener may have at a time, in total and per address, and the
/// current counts.
package final class ConnectionLimit: Sendable {
    private let max: Int
    /// `nil` when addresses are not counted.
    private let perAddressMax: Int?
    private let count = Atomic<Int>(0)
    private let waitCount = Atomic<Int>(0)
    /// Connections by address. Holds only addresses with open connections; locked once for each
    /// connection that opens, and once for each that closes.
    private let addresses = Mutex<[SourceAddress: Int]>([:])

    /// Creates a limit of `max` connections, of which at most `perAddress` from one address.
    package init(_ max: Int, perAddress: Int? = nil) {
        self.max = max
        perAddressMax = perAddress.flatMap { $0 < max ? $0 : nil }
    }

    /// The number of connections counted now.
    package var taken: Int { count.load(ordering: .relaxed) }

    /// How often the limit in total was found reached; new connections wait then.
    package var waits: Int { waitCount.load(ordering: .relaxed) }

    /// The number of addresses with open connections; 0 when addresses are not counted.
    var addressCount: Int { addresses.withLock(\.count) }

    /// Counts one more connection; returns false when the limit is reached.
    func take() -> Bool {
        if count.wrappingAdd(1, ordering: .relaxed).newValue <= max { return true }
        waitCount.wrappingAdd(1, ordering: .relaxed)
        release()
        return false
    }

    /// Uncounts a connection that has no permit.
    func release() { count.wrappingSubtract(1, ordering: .relaxed) }

    /// Returns the permit of a connection that `take` counted; `nil` when its address is at its
    /// limit, and then the connection is still counted.
    ///
    /// - Parameter address: `nil` for a connection of a proxy, whose address is not counted.
    func permit(for address: SourceAddress?) -> ConnectionPermit? {
        let permit = ConnectionPermit(limit: self, address: nil)
        return address.map { permit.counted(for: $0) } ?? permit
    }

    /// Counts a connection of an address; returns false when the address is at its limit.
    fileprivate func count(_ address: SourceAddress) -> Bool {
        guard let perAddressMax else { return true }
        return addresses.withLock { addresses in
            guard addresses[address, default: 0] < perAddressMax else { return false }
            addresses[address, default: 0] += 1
            return true
        }
    }

    fileprivate func release(_ address: SourceAddress?) {
        release()
        guard perAddressMax != nil, let address else { return }
        addresses.withLock { addresses in
            guard let count = addresses[address] else { return }
            addresses[address] = count > 1 ? count - 1 : nil
        }
    }
}

/// One connection's place under a limit. Its owner releases it once, with the connection.
struct ConnectionPermit: Sendable {
    fileprivate let limit: ConnectionLimit
    /// The address that the connection is counted for; `nil` for none.
    fileprivate let address: SourceAddress?

    /// Returns the permit that replaces this one, which no address is counted for, with one for
    /// `address`; `nil` when that is at its limit, and then this one stays in force.
    func counted(for address: SourceAddress) -> ConnectionPermit? {
        limit.count(address) ? ConnectionPermit(limit: limit, address: address) : nil
    }

    /// Uncounts the connection.
    func release() { limit.release(address) }
}

/// The reason why a connection was closed as soon as it was accepted, or is not accepted yet.
package enum ConnectionRefusal: String, CaseIterable, Sendable {
    /// Its source address is at its limit.
    case address
    /// The port is at its limit: connections wait.
    case connections
    /// There are no descriptors, or there is no memory, for more: connections wait.
    case files
}
