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
