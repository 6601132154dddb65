import GatewayCore
import Logging
import NIOCore

/// Ends streams whose authorization was revoked.
extension ShardLoop {
    /// A pass over all streams, in turns of the loop.
    struct AccessSweep {
        let policy: AccessPolicy
        /// The next slot to check.
        var next = 0
        /// The number of streams ended so far.
        var ended = 0
    }

    /// The CPU time that one turn of a sweep may take, in milliseconds.
    private static let sweepTurn: Int64 = 2
    /// The pause between two turns. Without it the loop would not poll its sockets in between.
    private static let sweepPause = TimeAmount.milliseconds(1)
    /// The number of streams checked between two clock reads.
    private static let sweepStride = 8

    /// Ends every stream whose token `policy` no longer admits, gracefully, with a random
    /// reconnection time for each reader. Can be called on any thread.
    package func endStreams(notAdmittedBy policy: AccessPolicy) {
        loop.execute { [self] in
            let isUnderWay = accessSweep != nil
            accessSweep = AccessSweep(policy: policy)
            if !isUnderWay { continueAccessSweep() }
        }
    }

    private func continueAccessSweep() {
        guard !isDraining, var sweep = accessSweep else { return }
        let end = now + Self.sweepTurn
        let wall = clock.wallSeconds()
        while sweep.next < details.count {
            let slot = sweep.next
            sweep.next += 1
            if let id = sessions[slot].id, let detail = details[slot],
                !sweep.policy.admits(detail.token, now: wall)
            {
                sweep.ended += 1
                self.end(id, farewell)
            }
            if sweep.next.isMultiple(of: Self.sweepStride), now >= end {
                accessSweep = sweep
                loop.scheduleTask(in: Self.sweepPause) { self.continueAccessSweep() }
                return
            }
        }
        accessSweep = nil
        if sweep.ended > 0 {
            logger.notice(
                "streams closed: their token, key or grant was revoked",
                metadata: ["streams": "\(sweep.ended)"])
        }
    }
}
