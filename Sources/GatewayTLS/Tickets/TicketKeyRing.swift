/// The keys of session tickets: one seals, and older ones still open what they sealed.
///
/// A ticket contains its session's secrets, so whoever has its key can decrypt recorded connections
/// of TLS 1.2. No key lasts longer than ``lifetime``.
package struct TicketKeyRing: Sendable {
    /// The time for which a key seals, in seconds.
    package static let period: Int64 = 12 * 3_600
    /// The number of keys that are kept.
    package static let keysMax = 3
    /// The time from the first use of a key to its end, in seconds.
    package static let lifetime = Int64(keysMax) * period

    /// The keys, the newest first.
    package private(set) var keys: [TicketKey] = []

    package init() {}

    /// Returns the key that seals at `now`, in seconds; makes one if the last one is too old.
    ///
    /// - Parameter make: Returns a new key that begins at the given time; `nil` without randomness,
    ///   and then so is the result.
    package mutating func sealing(
        at now: Int64, make: (_ begins: Int64) -> TicketKey?
    ) -> TicketKey? {
        if let key = keys.first(where: { $0.begins <= now }), now - key.begins < Self.period {
            return key
        }
        guard let key = make(now) else { return nil }
        add([key], at: now)
        return key
    }

    /// Returns the key with a name; `nil` if there is none, or its time is over.
    package func opening(_ name: UnsafeRawBufferPointer, at now: Int64) -> TicketKey? {
        keys.first { now - $0.begins < Self.lifetime && $0.isNamed(name) }
    }

    /// Adds keys from elsewhere, such as those that several nodes share; a key may begin later. The
    /// newest ``keysMax`` keys remain.
    package mutating func add(_ others: [TicketKey], at now: Int64) {
        let new = others.filter { other in !keys.contains { $0.isNamed(other.name) } }
        keys = (keys + new).filter { now - $0.begins < Self.lifetime }
            .sorted { $0.begins > $1.begins }
        keys.removeLast(max(0, keys.count - Self.keysMax))
    }
}
