import HTTPTypes
import Hummingbird
import NIOCore
import ServiceLifecycle
import Synchronization
import WidgetModel

/// The event streams of the dashboard: how the gateway does, each second (WHATWG HTML, section 9.2).
final class LiveStreams: Sendable {
    /// Streams at once; each costs a look at the counts a second.
    private static let openMax = 32
    private static let interval = Duration.seconds(1)

    private let open = Atomic<Int>(0)

    /// The answer that is such a stream. A reader that takes nothing holds up its own stream alone:
    /// each event is made when the last one is written.
    ///
    /// - Throws: 503 when there are as many as may be.
    func answer(_ desk: OverviewDesk) throws -> Response {
        guard open.load(ordering: .relaxed) < Self.openMax else {
            throw Problem.unavailable(
                "As many dashboards are open as may be, \(Self.openMax).", retryAfter: 10)
        }
        let body = ResponseBody { [self] writer in
            // What is written to is lent to this closure, and is not for other tasks.
            let first = open.wrappingAdd(1, ordering: .relaxed).oldValue
            defer { open.wrappingSubtract(1, ordering: .relaxed) }
            if first < Self.openMax {
                try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
                for await _ in Ticks(interval: Self.interval).cancelOnGracefulShutdown() {
                    try await writer.write(Self.event(desk.overview()))
                }
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok,
            headers: [.contentType: "text/event-stream", .cacheControl: "no-store, no-transform"],
            body: body)
    }

    private static func event(_ json: JSONValue) -> ByteBuffer {
        var buffer = ByteBuffer(string: "event: overview\ndata: ")
        buffer.writeBytes(json.serialized)
        buffer.writeString("\n\n")
        return buffer
    }
}

/// One at once, and then one each interval, until its task is cancelled.
private struct Ticks: AsyncSequence, Sendable {
    struct Iterator: AsyncIteratorProtocol {
        let interval: Duration
        var isFirst = true

        mutating func next() async -> Void? {
            if isFirst {
                isFirst = false
                return ()
            }
            return try? await Task.sleep(for: interval)
        }
    }

    let interval: Duration

    func makeAsyncIterator() -> Iterator { Iterator(interval: interval) }
}
