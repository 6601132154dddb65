import NIOCore
import NIOHTTP1
import Synchronization
import WidgetModel

/// The event streams of the dashboard: the status of the gateway, every second (WHATWG HTML,
/// section 9.2).
final class LiveStreams: Sendable {
    /// The maximum number of streams; each reads all counts once a second.
    private static let openMax = 32
    private static let interval = Duration.seconds(1)

    private let open = Atomic<Int>(0)

    /// Returns a response that is such a stream. A reader that accepts nothing delays only its own
    /// stream: each event is made when the previous one is written.
    ///
    /// - Throws: 503 if the maximum number of streams is open.
    func answer(_ sampler: OverviewSampler) throws(ProblemDetails) -> RouteResponse {
        let stream = Stream(of: self)
        guard stream.number <= Self.openMax else {
            throw Problem.unavailable(
                "Too many open dashboards; at most \(Self.openMax) are allowed.", retryAfter: 10)
        }
        return RouteResponse(
            .ok,
            headers: [
                FieldName.contentType: "text/event-stream",
                FieldName.cacheControl: "no-store, no-transform",
            ], pieces: AsyncStream(unfolding: { await stream.next(sampler) }))
    }

    /// One stream, open as long as this object is referenced.
    private final class Stream: Sendable {
        /// The number of open streams when it was opened, including itself.
        let number: Int
        private let streams: LiveStreams
        private let isBegun = Atomic(false)

        init(of streams: LiveStreams) {
            self.streams = streams
            number = streams.open.wrappingAdd(1, ordering: .relaxed).newValue
        }

        deinit { streams.open.wrappingSubtract(1, ordering: .relaxed) }

        /// Returns an event: the first at once, others after an interval; `nil` when the task is
        /// cancelled.
        func next(_ sampler: OverviewSampler) async -> ByteBuffer? {
            var buffer = ByteBuffer()
            if isBegun.exchange(true, ordering: .relaxed) {
                guard (try? await Task.sleep(for: LiveStreams.interval)) != nil else { return nil }
            } else {
                buffer.writeString("retry: 2000\n\n")
            }
            guard let overview = try? JSONValue(encoding: sampler.overview()) else { return nil }
            buffer.writeString("event: overview\ndata: ")
            buffer.writeBytes(overview.serialized)
            buffer.writeString("\n\n")
            return buffer
        }
    }
}
