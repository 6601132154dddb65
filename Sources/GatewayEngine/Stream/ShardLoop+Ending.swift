import CoreMetrics
import GatewayCore
import GatewayOperations
import GatewayTLS
import Logging
import NIOCore
import WidgetModel

/// Ends streams and polls: those refused, those that a newer one of their client replaces, and those
/// whose authorization was revoked.
extension ShardLoop {
    /// The name of a connection that is no stream.
    private static let refusedName = UInt64.max

    /// Ends a connection that was to become a stream, after a response that states why it did not.
    ///
    /// - Parameter answer: The complete response.
    package func end(_ connection: TLSConnection, after answer: ByteBuffer) {
        loop.assertInEventLoop()
        guard let stream = connections.adopt(connection, name: Self.refusedName) else { return }
        answer.withUnsafeReadableBytes { connections.end(stream, farewell: $0) }
    }

    /// Ends a stream or a waiting poll that a newer one of the same client has replaced.
    ///
    /// Its reader is told why, and to come back after a minute. If a client has more readers than
    /// places, they take turns instead of fighting for them.
    func endReplaced(_ id: StreamID) {
        loop.assertInEventLoop()
        guard isOpen(id), let detail = details[Int(id.slot)] else { return }
        metrics.streamsReplaced.increment()
        let (app, client) = (detail.key.app, detail.key.client)
        sampledLog?.log(
            .replacedStream, of: "\(app) \(client)",
            ["app": "\(app)", "client": "\(client)", "poll": "\(detail.isPoll)"])
        let comment = ": a newer stream of this client has taken the place of this one\n"
        let farewell = Frame(
            Array(comment.utf8)
                + EventStreamEncoder.retry(milliseconds: settings.replacedRetryMilliseconds))
        guard let sink = sessions[Int(id.slot)].sink else { return end(id, farewell) }
        sink.endReplaced(farewell.blocks)
        // It must not count for long, even if the sink is slow to go.
        close(id)
    }

    // MARK: Revoked authorizations

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
