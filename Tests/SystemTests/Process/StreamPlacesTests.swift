import GatewayTestSupport
import Testing

/// Phones that change networks, and clients whose patience is shorter than their polls.
@Suite(.alone) struct StreamPlacesTests {
    @Test(arguments: [TestHTTPVersion.one, .two])
    func `a fifth stream takes the place of the oldest, which is told to come back late`(
        version: TestHTTPVersion
    ) throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let client = try game.client("phone", ["panda"])
        let streams = try (0..<5).map { _ in
            let stream = game.stream(client, version: version)
            try #require(stream.head()?.status == 200)
            return stream
        }
        #expect(streams[0].waitForEnd())
        #expect(streams[0].retry == 60_000)
        _ = streams[0].takeAll()
        guard case .ended(nil) = streams[0].next() else {
            Issue.record("it was cut")
            return
        }
        let head = try game.change(gateway.http(), ["panda"], run: "after")
        for stream in streams.dropFirst() {
            _ = try stream.cursor(covering: head)
            stream.close()
        }
        #expect(try gateway.metrics()["timeline_gateway_streams_replaced_total"] == 1)
        let line = gateway.standardErrorTail.split(separator: "\n").first {
            $0.contains("a stream or poll was ended for a newer one of its client")
        }
        #expect(line?.contains("client=phone") == true, "\(gateway.standardErrorTail)")
    }

    /// A poll that begins before them and is waited for to the end tells that those that were
    /// abandoned ended before their time.
    @Test(arguments: [TestHTTPVersion.one, .two])
    func `polls that are abandoned leave no trace, and the next one is not refused`(
        version: TestHTTPVersion
    ) async throws {
        let gateway = try LocalGateway()
        let game = try GameFixture(gateway)
        let kept = try game.client("kept", ["owl"])
        let client = try game.client("phone", ["panda"])
        async let answer = poll(kept, gateway.http())
        func wait(_ count: Double) throws {
            try blockUntil("\(count) polls wait") {
                try gateway.metrics()["timeline_gateway_streams"] == count
            }
        }
        try wait(1)
        let impatient = gateway.http(version, timeoutSeconds: 1)
        for _ in 0..<6 {
            await #expect(throws: TestHTTPError.self) { try await poll(client, impatient) }
        }
        // libcurl may keep the reset of the last one until the connection is used again.
        _ = try await impatient.send("GET", "/.well-known/jwks.json")
        try wait(1)
        try game.change(gateway.http(), ["owl"], run: "after")
        let told = try await PollAnswer(answer).notifications
        #expect(!told.isEmpty)
        #expect(try gateway.metrics()["timeline_gateway_streams_replaced_total"] == 0)
    }

    private func poll(
        _ client: GameFixture.Client, _ http: TestHTTP
    ) async throws -> TestHTTPAnswer {
        try await http.send(
            "GET", "/v1/apps/\(GameFixture.app)/clients/\(client.name)/reloads",
            token: client.token,
            headers: [("Prefer", "wait=50"), ("Last-Event-ID", client.cursor)])
    }
}
