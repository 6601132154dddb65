import GatewayEngine
import GatewayHTTP
import NIOCore
import NIOHTTP1
import Synchronization
import WidgetModel

/// The event streams of the dashboard: the state of the gateway, each second (WHATWG HTML, section
/// 9.2).
final class LiveStreams: Sendable {
    /// Streams at once; each costs a look at the counts a second.
    private static let openMax = 32
    private static let interval = Duration.seconds(1)

    private let open = Atomic<Int>(0)

    /// Returns the answer that is such a stream. A reader that takes nothing holds up its own stream
    /// alone: each event is made when the last one is written.
    ///
    /// - Throws: 503 when there are as many as may be.
    func answer(_ desk: OverviewDesk) throws(ProblemDetails) -> GatewayAnswer {
        let stream = Stream(of: self)
        guard stream.number <= Self.openMax else {
            throw Problem.unavailable(
                "As many dashboards are open as may be, \(Self.openMax).", retryAfter: 10)
        }
        return GatewayAnswer(
            .ok,
            headers: [
                FieldName.contentType: "text/event-stream",
                FieldName.cacheControl: "no-store, no-transform",
            ], pieces: AsyncStream(unfolding: { await stream.next(desk) }))
    }

    /// One stream, which is open as long as anybody has this object.
    private final class Stream: Sendable {
        /// Open streams, this one included, when it was opened.
        let number: Int
        private let streams: LiveStreams
        private let isBegun = Atomic(false)

        init(of streams: LiveStreams) {
            self.streams = streams
            number = streams.open.wrappingAdd(1, ordering: .relaxed).newValue
        }

        deinit { streams.open.wrappingSubtract(1, ordering: .relaxed) }

        /// Returns an event: the first at once, others after an interval; `nil` once the task is
        /// cancelled.
        func next(_ desk: OverviewDesk) async -> ByteBuffer? {
            var buffer = ByteBuffer()
            if isBegun.exchange(true, ordering: .relaxed) {
                guard (try? await Task.sleep(for: LiveStreams.interval)) != nil else { return nil }
            } else {
                buffer.writeString("retry: 2000\n\n")
            }
            guard let overview = try? JSONValue(encoding: desk.overview()) else { return nil }
            buffer.writeString("event: overview\ndata: ")
            buffer.writeBytes(overview.serialized)
            buffer.writeString("\n\n")
            return buffer
        }
    }
}
