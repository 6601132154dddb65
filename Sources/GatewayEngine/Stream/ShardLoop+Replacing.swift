import CoreMetrics
import GatewayCore
import GatewayOperations
import Logging
import NIOCore
import WidgetModel

extension ShardLoop {
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
}
