/// The lease of a cluster's lead, as one node sees it: a value without I/O and clock.
///
/// A renewal extends the lease to 6 s (``duration``) by the database's clock. The holder stops
/// writing 4 s (``ownDuration``) after its last renewal began, by a clock that goes on while the
/// machine sleeps. So a node that was paused or cut off stops before another leads; if it writes
/// late, its generation is refused.
package struct Lease: Sendable {
    /// The duration of the lease after a renewal, by the database's clock, in milliseconds.
    static let duration: Int64 = 6_000
    /// The time after its last renewal began during which the holder may write.
    static let ownDuration: Int64 = 4_000
    static let renewalInterval: Int64 = 2_000
    /// A lease with more time left was set by another clock, and counts as expired.
    static let leftMax: Int64 = 30_000
    /// The time for which a node that lacks batches leaves a free lease to others.
    static let courtesy: Int64 = 5_000
    /// The time for which a node that could not lead leaves the lease to others.
    static let absence: Int64 = 10_000

    /// The lease as the database holds it.
    package struct View: Sendable, Equatable {
        /// The node that holds it, or held it last; `nil` before the first.
        package var node: String?
        package var generation: Int64
        /// The time until it runs out, by the database's clock, in milliseconds.
        package var left: Int64
    }

    /// The next action of the node.
    package enum Action: Sendable, Equatable {
        case nothing
        /// Take the lease in place of this generation, and look again.
        case take(from: Int64)
        /// Lead with this generation: everything before it is repeated.
        case lead(Int64)
        /// Stop leading, and follow.
        case follow
    }

    private let node: String
    /// The generation taken, and when its last renewal began.
    private var held: (generation: Int64, renewedAt: Int64)?
    private var isLeading = false
    /// The generation that the node took last. A later one of its name is another process's.
    private var lastTaken: Int64?
    /// The time since which the lease has been free.
    private var freeSince: Int64?
    /// The time until which the lease is left to other nodes.
    private var leavesUntil = Int64.min

    package init(node: String) { self.node = node }

    /// The generation to renew; `nil` without the lease.
    package var generation: Int64? { held?.generation }

    /// The time until which the node may write; `nil` while it does not lead.
    package var leadsUntil: Int64? {
        isLeading ? held.map { $0.renewedAt + Self.ownDuration } : nil
    }

    /// Decides what follows from a look at the database.
    ///
    /// - Parameters:
    ///   - isNewest: Whether the node has repeated every batch that the look saw.
    ///   - now: The time at which the look began, in milliseconds.
    package mutating func look(_ view: View, isNewest: Bool, now: Int64) -> Action {
        if let held, view.generation != held.generation || view.node != node {
            self.held = nil
            if isLeading {
                isLeading = false
                return .follow
            }
        }
        if let held {
            guard now < held.renewedAt + Self.ownDuration else {
                // Paused, or cut off: from here on as a node that never led.
                self.held = nil
                isLeading = false
                return .follow
            }
            guard !isLeading, isNewest else { return .nothing }
            isLeading = true
            return .lead(held.generation)
        }
        let isOwn = view.node == node && (lastTaken ?? view.generation) == view.generation
        let isFree = view.left <= 0 || view.left > Self.leftMax || isOwn
        guard isFree, now >= leavesUntil else {
            freeSince = nil
            return .nothing
        }
        let since = freeSince ?? now
        freeSince = since
        guard isNewest || now >= since + Self.courtesy else { return .nothing }
        return .take(from: view.generation)
    }

    /// Notes that the lease was taken by a write that began at a time.
    package mutating func took(_ generation: Int64, at began: Int64) {
        held = (generation, began)
        lastTaken = generation
        isLeading = false
        freeSince = nil
    }

    /// Notes that the lease was renewed by a write that began at a time.
    package mutating func renewed(at began: Int64) { held?.renewedAt = began }

    /// Notes that the node cannot lead with this generation any more, as after a write whose
    /// outcome is not known: it takes over from itself.
    package mutating func abandon() {
        held = nil
        isLeading = false
    }

    /// Leaves the lease to other nodes until a time.
    package mutating func leave(until end: Int64) {
        abandon()
        leavesUntil = end
    }
}
