import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// What an app may keep is bounded, exactly and across `kill -9`.
    @Suite struct QuotaTests {
        /// A gateway with small quotas, and two apps.
        private struct World {
            static let other = "com.other"
            let gateway: GatewayProcess
            let admin: TestHTTP
            let game: GameFixture
            let otherBackend: String

            init(_ limits: String) throws {
                let data = try GatewayProcess.temporaryDirectory()
                let port = try GatewayProcess.freePort()
                let made = try DevelopmentCertificates.ensure(
                    in: data, now: Int64(Date().timeIntervalSince1970))
                let file = data + "/gateway.yaml"
                try """
                publicURL: https://gateway.test
                tls: { certificate: \(made.certificate), key: \(made.key) }
                localIssuer: true
                limits: { \(limits) }
                """.write(toFile: file, atomically: true, encoding: .utf8)
                gateway = try GatewayProcess(
                    data: data, configuration: file, admin: "127.0.0.1:\(port)")
                admin = TestHTTP(url: "http://127.0.0.1:\(port)", ca: gateway.ca)
                game = try GameFixture(gateway)
                otherBackend = try gateway.token(
                    app: Self.other, scope: "catalog:write changes:write clients:write")
                let put = try gateway.http().request(
                    "PUT", "/v1/apps/\(Self.other)/catalog", token: otherBackend,
                    body: "{\"app\": \"\(Self.other)\", \"widgets\": []}")
                try #require(put.status == 201, "\(put.text)")
            }

            /// Registers a client; returns the status, after checking a refusal's words.
            func register(_ client: String, isOther: Bool = false) throws -> Int {
                let answer = try gateway.http().register(
                    client, app: isOther ? Self.other : GameFixture.app,
                    token: isOther ? otherBackend : game.backend, ["platform": "iOS"])
                if answer.status == 422 {
                    #expect(answer.text.contains("problem:too-many-clients"))
                    #expect(answer.text.contains("limits.clientsPerApp"))
                }
                return answer.status
            }

            /// Posts a change; returns the status, after checking a refusal's words.
            func post(_ id: String, isOther: Bool = false) throws -> Int {
                let answer = try gateway.http().post(
                    [event(source: "test", id: id, entity: "Character", key: "panda")],
                    app: isOther ? Self.other : GameFixture.app,
                    token: isOther ? otherBackend : game.backend)
                if answer.status == 429 {
                    #expect(answer.text.contains("problem:log-full"))
                    #expect(answer.text.contains("limits.logBytesPerApp"))
                    #expect(answer.header("retry-after") == "60")
                }
                return answer.status
            }

            /// Returns a gauge of the app.
            func gauge(_ name: String, app: String = GameFixture.app) throws -> Int? {
                let series = "timeline_gateway_\(name){app=\"\(app)\"} "
                let line = try admin.request("GET", "/metrics").text.split(separator: "\n")
                    .first { $0.hasPrefix(series) }
                return line.flatMap { Double($0.dropFirst(series.count)) }.map { Int($0) }
            }

            func remove() {
                gateway.kill()
                try? FileManager.default.removeItem(atPath: gateway.data)
            }
        }

        @Test func `an app has as many clients as it may, before and after a kill`() throws {
            let world = try World("clientsPerApp: 3")
            defer { world.remove() }
            for client in ["a", "b", "c"] { #expect(try world.register(client) == 201) }
            #expect(try world.register("d") == 422)
            #expect(try world.register("b") == 200)
            let patch = try world.gateway.http().request(
                "PATCH", "/v1/apps/\(GameFixture.app)/clients/c", token: world.game.backend,
                body: #"{"osVersion": "26"}"#)
            #expect(patch.status == 200, "\(patch.text)")
            #expect(try world.register("d", isOther: true) == 201)
            #expect(try world.gauge("app_clients") == 3)

            try world.gateway.restart()
            #expect(try world.gauge("app_clients") == 3)
            #expect(try world.gauge("app_clients", app: World.other) == 1)
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
            let world = try World("logBytesPerApp: \(limit)")
            defer { world.remove() }
            var accepted = 0
            while try world.post("\(accepted)") == 202, accepted < limit { accepted += 1 }
            #expect(accepted > 3 && accepted < limit / 20)
            let used = try #require(try world.gauge("app_log_bytes"))
            #expect(used <= limit && used > limit - 200)
            #expect(try world.post("0") == 202)
            #expect(try world.post("0", isOther: true) == 202)
            #expect(try world.gauge("app_log_bytes") == used)

            let other = try #require(try world.gauge("app_log_bytes", app: World.other))
            try world.gateway.restart()
            #expect(try world.gauge("app_log_bytes") == used)
            #expect(try world.gauge("app_log_bytes", app: World.other) == other)
            #expect(try world.post("\(accepted)") == 429)
            #expect(try world.post("0") == 202)
            #expect(try world.post("1", isOther: true) == 202)
            #expect(try world.gauge("app_log_bytes") == used)
        }
    }
}
