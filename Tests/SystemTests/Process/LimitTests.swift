import GatewayTestSupport
import Testing

/// The quotas of an app hold exactly, also across `kill -9`.
@Suite(.alone) struct QuotaTests {
    @Test func `an app has as many clients as it may, before and after a kill`() throws {
        let world = try LimitedGateway("limits: { clientsPerApp: 3 }", asProcess: true)
        for client in ["a", "b", "c"] { #expect(try world.register(client) == 201) }
        #expect(try world.register("d") == 422)
        #expect(try world.register("b") == 200)
        let patch = try world.gateway.http().request(
            "PATCH", "/v1/apps/\(GameFixture.app)/clients/c", token: world.game.backend,
            body: #"{"osVersion": "26"}"#)
        #expect(patch.status == 200, "\(patch.text)")
        #expect(try world.register("d", isOther: true) == 201)
        #expect(try world.gauge("app_clients") == 3)

        try world.gateway.process.restart()
        #expect(try world.gauge("app_clients") == 3)
        #expect(try world.gauge("app_clients", app: LimitedGateway.other) == 1)
        #expect(try world.register("d") == 422)
        #expect(try world.register("a") == 200)
        let removed = try world.gateway.http().request(
            "DELETE", "/v1/apps/\(GameFixture.app)/clients/a", token: world.game.backend)
        #expect(removed.status == 204)
        #expect(try world.register("d") == 201)
        #expect(try world.register("e") == 422)
        #expect(try world.gauge("app_clients") == 3)
    }

    @Test func `the log has as much of an app as it may, before and after a kill`() throws {
        let limit = 2_000
        let world = try LimitedGateway("limits: { logBytesPerApp: \(limit) }", asProcess: true)
        var accepted = 0
        while try world.post("\(accepted)") == 202, accepted < limit { accepted += 1 }
        #expect(try world.post("0", isOther: true) == 202)
        let used = try #require(try world.gauge("app_log_bytes"))
        #expect(used <= limit && used > limit - 200)

        try world.gateway.process.restart()
        #expect(try world.gauge("app_log_bytes") == used)
        #expect(try world.post("\(accepted)") == 429)
        #expect(try world.post("0") == 202, "it is a duplicate")
    }
}

/// A client that sends too many requests is rejected with the time to come back; others not.
@Suite(.alone) struct RateTests {
    private func poll(
        _ client: GameFixture.Client, _ gateway: any TestGateway
    ) throws -> TestHTTPAnswer {
        try gateway.http().request(
            "GET", "/v1/apps/\(GameFixture.app)/clients/\(client.name)/reloads",
            token: client.token)
    }

    private func isRefused(_ answer: TestHTTPAnswer, policy: String, quota: Int) {
        #expect(answer.status == 429, "\(answer.text)")
        #expect(answer.header("ratelimit-policy") == "\"\(policy)\";q=\(quota);w=3600")
        let seconds = answer.header("retry-after").flatMap(Int.init) ?? 0
        #expect((1...3_600).contains(seconds))
        #expect(answer.header("ratelimit") == "\"\(policy)\";r=0;t=\(seconds)")
    }

    @Test(arguments: [TestHTTPVersion.one, .two])
    func `a client over its rate is refused, and no other`(version: TestHTTPVersion) throws {
        let quota = 10
        let world = try LimitedGateway("rates: { client: \(quota)/1h burst \(quota) }")
        let busy = try world.game.client("busy", ["panda"])
        let quiet = try world.game.client("quiet", ["panda"])
        // The registration was a request, too.
        for _ in 1..<quota { #expect(try poll(busy, world.gateway).status == 200) }
        let refused = try poll(busy, world.gateway)
        isRefused(refused, policy: "client", quota: quota)
        #expect(refused.text.contains("problem:rate-limited"))
        #expect(refused.text.contains("`rates.client`"))
        let stream = world.game.stream(busy, version: version)
        defer { stream.close() }
        isRefused(try #require(stream.head()), policy: "client", quota: quota)

        #expect(try poll(quiet, world.gateway).status == 200)
        #expect(try world.post("1") == 202)
        let logged = world.gateway.standardErrorTail.split(separator: "\n").filter {
            $0.contains("requests exceed a rate")
        }
        #expect((1...3).contains(logged.count))
        #expect(logged.allSatisfy { $0.contains("sender=\"\(GameFixture.app) busy\"") })
    }

    /// A stream of HTTP/1.1 takes a whole connection, which has its own count and limit.
    @Test func `streams of HTTP/2 count as requests of their address`() throws {
        let quota = 60
        let world = try LimitedGateway("rates: { address: \(quota)/1h burst \(quota) }")
        // Each client may hold only a few streams, and a closed one still counts for a moment.
        let clients = try (0..<20).map { try world.game.client("phone-\($0)", ["panda"]) }
        var refused: TestHTTPAnswer?
        for number in 0..<quota where refused == nil {
            let client = clients[number % clients.count]
            let stream = world.game.stream(client, version: .two)
            defer { stream.close() }
            let head = try #require(stream.head())
            if head.status != 200 { refused = head }
        }
        isRefused(try #require(refused), policy: "address", quota: quota)
    }
}

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
