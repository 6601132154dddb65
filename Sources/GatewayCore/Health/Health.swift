/// Decides whether the gateway is ready and alive. Readiness fails fast; liveness fails slowly,
/// because it leads to a restart. Evaluated only when a probe asks.
package struct Health: Sendable {
    /// A snapshot of the gateway's progress.
    package struct Snapshot: Sendable {
        /// Whether the gateway accepts connections.
        package var isServing: Bool
        /// The last sequence on disk.
        package var head: UInt64
        /// The last entry that every event loop has applied.
        package var loops: UInt64
        /// The last entry that was decided for pushes; `nil` without pushes.
        package var pushes: UInt64?
        /// The number of transactions on disk.
        package var commits: UInt64
        /// The number of transactions that the disk refused.
        package var failedCommits: UInt64
        /// Whether the disk refuses writes; see ``WriteHealth``.
        package var isDiskRefusing: Bool
        /// The number of writes waiting for the disk.
        package var waitingWrites: Int
        /// The expiry of the server's certificate, seconds since 1970.
        package var certificateEnds: Int64

        package init(
            isServing: Bool, head: UInt64, loops: UInt64, pushes: UInt64?, commits: UInt64,
            failedCommits: UInt64, isDiskRefusing: Bool, waitingWrites: Int, certificateEnds: Int64
        ) {
            self.isServing = isServing
            self.head = head
            self.loops = loops
            self.pushes = pushes
            self.commits = commits
            self.failedCommits = failedCommits
            self.isDiskRefusing = isDiskRefusing
            self.waitingWrites = waitingWrites
            self.certificateEnds = certificateEnds
        }
    }

    /// A part of the gateway that may fail.
    package enum Part: String, Sendable, CaseIterable {
        /// The listener: connections are not accepted.
        case listener
        /// The event loops: committed changes do not reach the streams.
        case eventLoops = "event loops"
        /// The log: nothing is committed.
        case log
        /// The pushes: committed changes are not decided for pushes.
        case pushes
        /// The server's certificate has expired.
        case certificate
    }

    /// The failing parts.
    package struct Verdict: Sendable, Equatable {
        /// The parts that make the gateway not ready.
        package var notReady: [Part] = []
        /// The parts that a restart may repair.
        package var stuck: [Part] = []
    }

    /// The time without progress after which a part is not ready, ms.
    package static let readyPatience: Int64 = 5_000
    /// The time without progress after which a part is stuck, ms.
    package static let alivePatience: Int64 = 60_000

    private var loops = ProgressWatch()
    private var pushes = ProgressWatch()
    private var writes = ProgressWatch()

    package init() {}

    /// Evaluates a snapshot.
    ///
    /// - Parameters:
    ///   - now: The monotonic time, ms.
    ///   - wallSeconds: The time in seconds since 1970.
    package mutating func judge(_ look: Snapshot, now: Int64, wallSeconds: Int64) -> Verdict {
        var verdict = Verdict()
        func note(_ part: Part, stuckFor milliseconds: Int64) {
            if milliseconds >= Self.readyPatience { verdict.notReady.append(part) }
            if milliseconds >= Self.alivePatience { verdict.stuck.append(part) }
        }
        if !look.isServing { verdict.notReady.append(.listener) }
        note(
            .eventLoops,
            stuckFor: loops.look(position: look.loops, target: look.head, now: now))
        judgeLog(look, now: now, note)
        if look.isDiskRefusing, !verdict.notReady.contains(.log) { verdict.notReady.append(.log) }
        if let position = look.pushes {
            note(.pushes, stuckFor: pushes.look(position: position, target: look.head, now: now))
        }
        if look.certificateEnds <= wallSeconds { verdict.notReady.append(.certificate) }
        return verdict
    }

    /// Evaluates the writer, which makes progress whenever a transaction ends, successfully or not.
    private mutating func judgeLog(
        _ look: Snapshot, now: Int64, _ note: (Part, _ stuckFor: Int64) -> Void
    ) {
        let ended = look.commits &+ look.failedCommits
        let target = look.waitingWrites > 0 ? ended &+ 1 : ended
        note(.log, writes.look(position: ended, target: target, now: now))
    }
}
