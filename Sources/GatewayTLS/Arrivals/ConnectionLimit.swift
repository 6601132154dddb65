import Synchronization

/// The number of connections that a listener may have at a time, in all and from one address, and
/// the number it has.
package final class ConnectionLimit: Sendable {
    private let max: Int
    /// `nil` where addresses are not counted.
    private let perAddressMax: Int?
    private let count = Atomic<Int>(0)
    /// Connections by address. Only addresses with open connections are in it; locked once for each
    /// connection that comes, and for each that goes.
    private let addresses = Mutex<[SourceAddress: Int]>([:])

    /// No connections yet of at most `max`.
    ///
    /// - Parameter perAddress: The most from one address; `nil` for no limit but `max`.
    package init(_ max: Int, perAddress: Int? = nil) {
        self.max = max
        perAddressMax = perAddress.flatMap { $0 < max ? $0 : nil }
    }

    /// Connections counted in now.
    package var taken: Int { count.load(ordering: .relaxed) }

    /// Addresses with open connections, where they are counted.
    var addressCount: Int { addresses.withLock(\.count) }

    /// Counts one in, if there is room for it.
    func take() -> Bool {
        if count.wrappingAdd(1, ordering: .relaxed).newValue <= max { return true }
        release()
        return false
    }

    /// Counts out one that has no permit.
    func release() { count.wrappingSubtract(1, ordering: .relaxed) }

    /// Returns the permit of a connection that `take` counted in; `nil` when its address has as many
    /// as it may, and then the connection is not counted out.
    func permit(for address: SourceAddress) -> ConnectionPermit? {
        guard let perAddressMax else { return ConnectionPermit(limit: self, address: address) }
        let isAdmitted = addresses.withLock { addresses in
            guard addresses[address, default: 0] < perAddressMax else { return false }
            addresses[address, default: 0] += 1
            return true
        }
        return isAdmitted ? ConnectionPermit(limit: self, address: address) : nil
    }

    fileprivate func release(_ address: SourceAddress) {
        release()
        guard perAddressMax != nil else { return }
        addresses.withLock { addresses in
            guard let count = addresses[address] else { return }
            addresses[address] = count > 1 ? count - 1 : nil
        }
    }
}

/// One connection's place under a limit. Whoever has it releases it once, with the connection.
struct ConnectionPermit: Sendable {
    private let limit: ConnectionLimit
    private let address: SourceAddress

    fileprivate init(limit: ConnectionLimit, address: SourceAddress) {
        (self.limit, self.address) = (limit, address)
    }

    /// Counts the connection out.
    func release() { limit.release(address) }
}

/// Why a connection was closed as soon as it was accepted.
package enum ConnectionRefusal: String, CaseIterable, Sendable {
    /// Its source address has as many as it may.
    case address
}
