import GatewayTestSupport
import Testing

extension ProcessTests {
    /// Gateways in one process do not notice each other.
    @Suite struct LocalGatewayTests {
        @Test func `two gateways beside each other, and one after them, have nothing in common`()
            throws
        {
            let (one, two) = (try LocalGateway(), try LocalGateway())
            let (game, other) = (try GameFixture(one), try GameFixture(two))
            _ = try game.client("phone", ["panda"])
            for (gateway, clients) in [(one, 1.0), (two, 0)] {
                #expect(try gateway.metrics()["timeline_gateway_clients"] == clients)
            }
            #expect(try other.put(GameFixture.catalog(collapse: "1s")) == 200)
            let strange = try two.http().request(
                "GET", "/v1/apps/\(GameFixture.app)/catalog", token: game.backend)
            #expect(strange.status == 401)
            #expect(one.terminate() == .status(0))
            #expect(one.standardErrorTail.contains("the gateway has stopped"))
            #expect(!two.standardErrorTail.contains("the gateway stops"))
            #expect(two.status(of: "/readyz") == 200)
            _ = try GameFixture(LocalGateway()).client("phone", ["panda"])
            #expect(two.terminate() == .status(0))
        }
    }
}
