import GatewayTestSupport
import Testing

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
