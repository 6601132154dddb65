import GatewayCore
import WidgetModel

/// The knowledge of a client that nodes share: it may be connected to any node, and another node
/// may take over the pushes to it.
extension DeliveryAttempts {
    /// Returns the sequence up to which every change that affects the client was confirmed or
    /// accepted by an address.
    ///
    /// - Parameter position: The sequence up to which all changes are known.
    func told(at position: UInt64) -> UInt64 { isUnreported ? reported : position }

    /// Records that a stream of the client is open, of which this node does not know yet: the waiting
    /// change has the grace period that a stream of this node would have given it.
    ///
    /// - Parameter id: The id of the client's streams, up to which they sent everything.
    mutating func streamIsOpenElsewhere(sentUpTo id: UInt64, now: Int64) {
        heard()
        guard isPending else { return }
        if id < latest { pendingSince = now }
        graceUntil = max(graceUntil, pendingSince.later(by: Self.grace))
    }

    /// Postpones the next push, because the knowledge of other nodes cannot be read now.
    mutating func wait(until time: Int64) {
        for index in addresses.indices {
            addresses[index].notBefore = max(addresses[index].notBefore, time)
        }
    }
}
