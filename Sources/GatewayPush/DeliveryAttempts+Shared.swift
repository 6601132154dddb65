import GatewayCore
import WidgetModel

/// The knowledge of a client that nodes share: it may be connected to any node, and another node
/// may take over the pushes to it.
extension DeliveryAttempts {
    /// Returns the sequence up to which every change that affects the client was confirmed or
    /// accepted by an address. Never falls.
    ///
    /// - Parameter position: The last applied entry of the log.
    func told(at position: UInt64) -> UInt64 {
        isUnreported ? min(unreportedFrom - 1, position) : position
    }

    /// Takes over the pushes to a client that another node told everything up to a sequence.
    mutating func takeOver(told sequence: UInt64) {
        for index in addresses.indices where addresses[index].delivered < sequence {
            // The next push reports the changes after it, also if the versions of those before the
            // last accepted push are forgotten.
            addresses[index].delivered = sequence
        }
        unreportedFrom = sequence + 1
    }

    /// Records that a stream of the client is open at another node: the waiting change has the grace
    /// period that a stream of this node would have given it.
    mutating func streamIsOpenElsewhere(now: Int64) {
        heard()
        guard isPending else { return }
        graceUntil = max(graceUntil, pendingSince.later(by: Self.grace))
    }

    /// Postpones the next push, because the knowledge of other nodes cannot be read now.
    mutating func wait(until time: Int64) {
        for index in addresses.indices {
            addresses[index].notBefore = max(addresses[index].notBefore, time)
        }
    }
}
