import Synchronization
import Testing

@testable import TimelineGatewayClient

/// Tests for the duties of a connection, on an HTTP library that only opens exchanges.
@Suite(.timeLimit(.minutes(30))) final class HTTPExchangeTests: Sendable {
    private typealias Next = @Sendable () async throws(ConnectionError) -> [UInt8]?
    private let ended = Mutex(0)

    /// A peer that says nothing, until the calling task is cancelled.
    private static let nothing: Next = { () async throws(ConnectionError) -> [UInt8]? in
        let (silence, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        defer { continuation.finish() }
        var pieces = silence.makeAsyncIterator()
        return await pieces.next()
    }

    private func exchanges(
        hasHead: Bool = true, _ deadlines: (inout ConnectionDeadlines) -> Void = { _ in },
        next: @escaping Next
    ) -> HTTPExchanges {
        var limits = ConnectionDeadlines()
        deadlines(&limits)
        return HTTPExchanges(deadlines: limits) {
            (_: GatewayRequest) async throws(ConnectionError) -> HTTPExchange in
            if !hasHead { _ = try await Self.nothing() }
            return HTTPExchange(
                head: GatewayResponseHead(status: 200, headers: []), next: next,
                end: { self.ended.withLock { $0 += 1 } })
        }
    }

    private static let request = GatewayRequest(target: "/v1")

    @Test func aHeadThatDoesNotComeTimesOut() async {
        let exchanges = exchanges(
            hasHead: false, { $0.head = .milliseconds(1) }, next: Self.nothing)
        #expect(await connectionCode { _ = try await exchanges.stream(Self.request) } == .timedOut)
        #expect(await connectionCode { _ = try await exchanges.send(Self.request) } == .timedOut)
    }

    @Test func aBodyWithoutEndTimesOut() async {
        let dripping: Next = { () async throws(ConnectionError) -> [UInt8]? in
            if Task.isCancelled { throw ConnectionError(.cancelled, "cancelled") }
            await Task.yield()
            return [1]
        }
        let exchanges = exchanges({ $0.request = .milliseconds(1) }, next: dripping)
        let endless = GatewayRequest(target: "/v1", responseBytesMax: .max)
        #expect(await connectionCode { _ = try await exchanges.send(endless) } == .timedOut)
        let small = GatewayRequest(target: "/v1", responseBytesMax: 3)
        let pairs = self.exchanges(next: { () async throws(ConnectionError) -> [UInt8]? in [1, 2] })
        #expect(await connectionCode { _ = try await pairs.send(small) } == .tooLarge)
    }

    /// Cancelling the task that reads does not end the exchange of every library.
    @Test func anExchangeThatIsGivenUpIsEnded() async {
        let reader = Mutex<CheckedContinuation<Void, Never>?>(nil)
        let exchanges = exchanges(next: { () async throws(ConnectionError) -> [UInt8]? in
            await withCheckedContinuation { waiting in reader.withLock { $0 = waiting } }
            return nil
        })
        let task = Task { try await exchanges.send(Self.request) }
        while reader.withLock({ $0 == nil }) { await Task.yield() }
        task.cancel()
        #expect(await connectionCode { _ = try await task.value } == .cancelled)
        #expect(ended.withLock { $0 } > 0)
        reader.withLock { $0?.resume() }
    }

    /// A library's own timeout of a stream is silence, too.
    @Test func aStreamThatIsSilentEndsAsSilent() async throws {
        let ours = exchanges({ $0.silence = .milliseconds(1) }, next: Self.nothing)
        let theirs = exchanges(next: { () async throws(ConnectionError) -> [UInt8]? in
            throw ConnectionError(.timedOut, "timed out")
        })
        for exchanges in [ours, theirs] {
            let stream = try await exchanges.stream(Self.request)
            let before = ended.withLock { $0 }
            #expect(await connectionCode { for try await _ in stream.body {} } == .silent)
            #expect(ended.withLock { $0 } > before)
        }
    }

    @Test func aStreamThatIsDroppedIsEnded() async throws {
        var stream: GatewayStream? = try await exchanges(next: Self.nothing)
            .stream(Self.request)
        #expect(stream?.head.status == 200)
        stream = nil
        while ended.withLock({ $0 == 0 }) { await Task.yield() }
    }

    @Test(
        arguments: [
            ("https://host", "https://host"), ("https://host/", "https://host"),
            ("HTTPS://host:8443//", "HTTPS://host:8443"), ("http://host", nil), ("https://", nil),
            ("https://host/path", nil), ("https://a@host", nil), ("https://host?x", nil),
        ] as [(String, String?)])
    func anOriginIsAHostWithoutAPath(gateway: String, origin: String?) {
        #expect(ScriptedGateway.origin(gateway) == origin)
    }
}
