/// Whether the gateway can do its work: ready is fast to say no, alive is slow to, for that restarts
/// it. Looked at by probes; no probe, no judgement.
package struct Health: Sendable {
    /// What a look sees.
    package struct Look: Sendable {
        /// Whether connections are accepted.
        package var isServing: Bool
        /// The last sequence on disk.
        package var head: UInt64
        /// The last entry that every event loop has applied.
        package var loops: UInt64
        /// The last entry that was decided for pushes; `nil` where nothing is pushed.
        package var pushes: UInt64?
        /// Transactions on disk.
        package var commits: UInt64
        /// Transactions the disk refused.
        package var failedCommits: UInt64
        /// Whether the disk refuses writes; see ``WriteHealth``.
        package var isDiskRefusing: Bool
        /// Writes that wait for the disk.
        package var waitingWrites: Int
        /// When the server's certificate ends, in seconds since 1970.
        package var certificateEnds: Int64

        /// A look.
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
        /// The event loops: what is on disk does not reach the streams.
        case eventLoops = "event loops"
        /// The log: nothing gets on disk.
        case log
        /// The pushes: what is on disk is not decided for them.
        case pushes
        /// The server's certificate has ended.
        case certificate
    }

    /// What fails.
    package struct Verdict: Sendable, Equatable {
        /// The parts for which the gateway is not ready.
        package var notReady: [Part] = []
        /// The parts that a restart may help.
        package var stuck: [Part] = []
    }

    /// Without progress for so long, a part is not ready, in milliseconds.
    package static let readyPatience: Int64 = 5_000
    /// Without progress for so long, it is stuck.
    package static let alivePatience: Int64 = 60_000

    private var loops = ProgressWatch()
    private var pushes = ProgressWatch()
    private var writes = ProgressWatch()

    /// Nothing was looked at yet.
    package init() {}

    /// Judges a look.
    ///
    /// - Parameters:
    ///   - now: Monotonic milliseconds.
    ///   - wallSeconds: Seconds since 1970.
    package mutating func judge(_ look: Look, now: Int64, wallSeconds: Int64) -> Verdict {
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

    /// The writer moves when transactions end, either way.
    private mutating func judgeLog(
        _ look: Look, now: Int64, _ note: (Part, _ stuckFor: Int64) -> Void
    ) {
        let ended = look.commits &+ look.failedCommits
        let target = look.waitingWrites > 0 ? ended &+ 1 : ended
        note(.log, writes.look(position: ended, target: target, now: now))
    }
}
