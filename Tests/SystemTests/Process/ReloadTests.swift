import Foundation
import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

/// A configuration that changes while the gateway runs.
@Suite(.alone) struct ReloadTests {
    private static func world(_ options: [String] = []) throws -> WatchedGateway {
        try WatchedGateway(options, days: 30)
    }

    @Test func `an issuer is believed from a SIGHUP on, and no stream notices`() throws {
        let world = try Self.world()
        let game = try GameFixture(world.gateway)
        let client = try game.client("client", ["a"])
        let stream = game.stream(client)
        try #require(stream.head()?.status == 200)
        let key = try SigningKey(generating: .edDSA)
        try Data(try key.publicKey.pem()).write(to: URL(filePath: world.folder + "/issuer.pem"))
        let now = Int64(Date().timeIntervalSince1970)
        let token = try TokenIssuer(
            key: key, iss: "https://accounts.test", aud: "https://gateway.test"
        ).issue(
            sub: "backend", app: GameFixture.app, scopes: [.changesWrite], ttl: 600,
            attributes: [:], now: now)
        func post(_ id: String) throws -> Int {
            try world.http.post(
                [event(source: "reload", id: id, entity: "Character", key: "a")],
                app: GameFixture.app, token: token
            ).status
        }
        #expect(try post("1") == 401)
        try WatchedGateway.write(
            [
                "issuers:",
                "  - { iss: https://accounts.test, apps: [\(GameFixture.app)],"
                    + " scopes: [changes:write], keys: \(world.folder)/issuer.pem }",
            ], in: world.folder)
        world.hangUp()
        try world.wait("configuration_reloads_total{outcome=\"applied\"}") { $0 >= 1 }
        #expect(try post("2") == 202)
        var isTold = false
        while !isTold, case .block(let block) = stream.next() {
            isTold = block.event == "reload"
        }
        #expect(isTold)
        #expect(try world.sample("streams_opened_total") == 1)
        stream.close()
        #expect(world.gateway.terminate() == .status(0))
        let log = world.gateway.standardErrorTail
        #expect(
            log.contains("message=\"the configuration changed\" occasion=SIGHUP option=issuers")
        )
    }

    /// Adds an issuer to the configuration; returns a client's token of that issuer.
    private func addIssuer(_ world: WatchedGateway, _ key: SigningKey, jti: String) throws
        -> String
    {
        try Data(try key.publicKey.pem()).write(to: URL(filePath: world.folder + "/issuer.pem"))
        try WatchedGateway.write(Self.issuer(world), in: world.folder)
        world.hangUp()
        try world.wait("configuration_reloads_total{outcome=\"applied\"}") { $0 >= 1 }
        return try TokenIssuer(
            key: key, iss: "https://accounts.test", aud: "https://gateway.test"
        ).issue(
            sub: "client", app: GameFixture.app, scopes: [.client], ttl: 600,
            now: Int64(Date().timeIntervalSince1970), jti: jti)
    }

    private static func issuer(_ world: WatchedGateway) -> [String] {
        [
            "issuers:",
            "  - { iss: https://accounts.test, apps: [\(GameFixture.app)],"
                + " scopes: [client], keys: \(world.folder)/issuer.pem }",
        ]
    }

    /// Opens two streams and a long poll with a token and lets `body` revoke the token's
    /// access. Expects all three to end, and a stream of another token to continue.
    private func expectEnds(
        _ world: WatchedGateway, _ game: GameFixture, _ client: GameFixture.Client,
        _ token: String,
        _ body: () throws -> Void
    ) async throws {
        let kept = game.stream(client)
        try #require(kept.head()?.status == 200)
        let lost = [TestHTTPVersion.one, .two].map {
            world.gateway.stream(
                app: GameFixture.app, client: client.name, token: token, from: client.cursor,
                version: $0)
        }
        for stream in lost { try #require(stream.head()?.status == 200) }
        let path = "/v1/apps/\(GameFixture.app)/clients/\(client.name)/reloads"
        let http = world.http
        async let poll = http.send(
            "GET", path, token: token,
            headers: [("Prefer", "wait=50"), ("Last-Event-ID", client.cursor)])
        try world.wait("streams") { $0 == 4 }
        try body()
        for stream in lost { #expect(stream.waitForEnd()) }
        let answer = try await poll
        #expect(answer.status == 401, "\(answer.text)")
        #expect(answer.text.contains("token-revoked"), "\(answer.text)")
        #expect(try world.http.request("GET", path, token: token).status == 401)
        // Ended in order, and without another reload.
        for stream in lost {
            #expect(stream.takeAll().allSatisfy { $0.event == nil })
            guard case .ended(nil) = stream.next() else {
                Issue.record("the stream was cut")
                continue
            }
        }
        try game.change(world.http, ["a"], run: "after")
        var isTold = false
        while !isTold, case .block(let block) = kept.next() {
            isTold = block.event == "reload"
        }
        #expect(isTold)
        kept.close()
    }

    @Test func `what an issuer's key opened ends when the key is replaced`() async throws {
        let world = try Self.world()
        let game = try GameFixture(world.gateway)
        let client = try game.client("client", ["a"])
        let token = try addIssuer(world, try SigningKey(), jti: "1")
        try await expectEnds(world, game, client, token) {
            // The file watch notices it.
            try Data(try SigningKey().publicKey.pem()).write(
                to: URL(filePath: world.folder + "/issuer.pem"))
        }
    }

    @Test func `what a token opened ends when it is denied, until the entry goes`() async throws {
        let world = try Self.world()
        let game = try GameFixture(world.gateway)
        let client = try game.client("client", ["a"])
        let token = try addIssuer(world, try SigningKey(), jti: "token-1")
        try await expectEnds(world, game, client, token) {
            try WatchedGateway.write(
                Self.issuer(world) + ["denied: [{ jti: token-1 }]"], in: world.folder)
            world.hangUp()
        }
        let path = "/v1/apps/\(GameFixture.app)/clients/client/reloads"
        func poll(_ token: String) throws -> TestHTTPAnswer {
            try world.http.request("GET", path, token: token)
        }
        #expect(try poll(token).text.contains("token-denied"))
        #expect(try poll(client.token).status == 200)
        // Denies a subject, that is all of its tokens.
        func deny(_ entry: String, applied: Double) throws {
            try WatchedGateway.write(Self.issuer(world) + [entry], in: world.folder)
            world.hangUp()
            try world.wait("configuration_reloads_total{outcome=\"applied\"}") {
                $0 >= applied
            }
        }
        try deny("denied: [{ app: \(GameFixture.app), sub: client }]", applied: 3)
        #expect(try poll(token).status == 401)
        #expect(try poll(client.token).status == 401)
        try deny(
            "denied: [{ app: \(GameFixture.app), sub: client, until: 2020-01-01T00:00:00Z }]",
            applied: 4)
        #expect(try poll(token).status == 200)
        #expect(try poll(client.token).status == 200)
    }

    @Test func `files are noticed by themselves, and wrong ones change nothing`() throws {
        let world = try Self.world()
        let ends = try world.sample("tls_certificate_not_after_seconds")
        // A certificate without its key: between two writes, or by mistake.
        let key = try Data(contentsOf: URL(filePath: world.folder + "/certs/server.key"))
        try Data("nonsense".utf8).write(to: URL(filePath: world.folder + "/certs/server.key"))
        try world.wait("configuration_reloads_total{outcome=\"refused\"}") { $0 >= 1 }
        #expect(try world.http.request("GET", "/.well-known/jwks.json").status == 200)
        try world.waitForLog("tls.key")
        try key.write(to: URL(filePath: world.folder + "/certs/server.key"))
        try world.wait("configuration_reloads_total{outcome=\"unchanged\"}") { $0 >= 1 }
        try world.waitForLog("the configuration is valid again")
        try WatchedGateway.makeCertificates(in: world.folder, days: 60)
        try world.wait("tls_certificate_not_after_seconds") { $0 > ends + 29 * 86_400 }
        try world.waitForLog("get the new certificate")
        #expect(try world.http.request("GET", "/.well-known/jwks.json").status == 200)
        let ready = try world.admin.request("GET", "/readyz")
        #expect(ready.status == 200, "\(ready.text)")
    }

    @Test func `operators ask what a configuration would change, and have it reloaded`() throws {
        let world = try Self.world()
        let one = try world.gateway.token(app: "com.mygame", scope: "operator")
        let all = try world.gateway.token(app: "*", scope: "operator")
        let proposed = """
            publicURL: https://gateway.test
            localIssuer: true
            threads: 1
            retention: { age: 2d }
            tls: { certificate: \(world.folder)/certs/server.pem, key: \(world.folder)/certs/server.key }
            """
        func ask(_ path: String, _ token: String, _ body: String?) throws -> TestHTTPAnswer {
            try world.http.request(
                "POST", "/v1/configuration/\(path)", token: token,
                headers: [("Content-Type", "application/yaml")], body: body)
        }
        #expect(try ask("diff", one, proposed).status == 403)
        #expect(try ask("reload", one, nil).status == 403)
        let difference = try ask("diff", all, proposed)
        #expect(difference.status == 200)
        #expect(
            difference["changes"] == [
                [
                    "option": "retention.age", "takesEffect": "now", "before": nil,
                    "after": "2d",
                ],
                [
                    "option": "threads", "takesEffect": "at the next start", "before": nil,
                    "after": "1",
                ],
            ], "\(difference.text)")
        let file = world.folder + "/proposed.yaml"
        try proposed.write(toFile: file, atomically: true, encoding: .utf8)
        let (exit, output) = try world.gateway.timelinectl(["config", "diff", file], token: all)
        #expect(exit == .status(0), "\(output)")
        #expect(output.contains("retention.age  default  2d"), "\(output)")
        // Files that only the sent configuration names are not opened: whether they exist, or what
        // they contain, is not to be found out through the network.
        let foreign = try ask(
            "diff", all,
            proposed + "\nissuers: [{ iss: a, apps: [b], scopes: [client], keys: /nowhere }]")
        #expect(foreign.status == 200 && foreign.text.contains(#""after":"/nowhere""#))
        let wrong = try ask("diff", all, "lisen: x\n")
        #expect(wrong.status == 422 && wrong.text.contains("did you mean `listen`?"))
        #expect(try ask("reload", all, nil)["changes"] == [])
        try WatchedGateway.write(["log: { level: debug }"], in: world.folder)
        // The request or the watch reports the change, whichever is first.
        #expect(try ask("reload", all, nil).status == 200)
        try world.wait("configuration_reloads_total{outcome=\"applied\"}") { $0 == 1 }
        try WatchedGateway.write(["log: { level: lots }"], in: world.folder)
        let refused = try ask("reload", all, nil)
        #expect(refused.status == 422 && refused.text.contains("log.level"))
    }

    @Test func `certificates and keys change under streams, of which none drops`() throws {
        let devices = 50
        let world = try Self.world(["signing: { publishLead: 12s }"])
        let backend = try world.gateway.token(
            app: CharacterGame.app,
            scope: "catalog:write changes:write clients:write tokens:issue")
        try world.http.putCatalog(CharacterGame.catalogYAML, app: CharacterGame.app, token: backend)
        let fleet = try TestProgram(
            GatewayProcess.program(named: "timelinectl"),
            [
                "device", "--url", world.gateway.url, "--ca", world.gateway.ca,
                "--token", backend, "--app", CharacterGame.app, "--json", "--devices",
                "\(devices)", "--items", "50", "--post", "5", "--build-ms", "1",
                "--patience", "3600",
            ])
        // One line of progress: every device is ready.
        _ = try fleet.json(line: 0)
        let ends = try world.sample("tls_certificate_not_after_seconds")
        try WatchedGateway.makeCertificates(in: world.folder, days: 60)
        world.hangUp()
        try world.wait("tls_certificate_not_after_seconds") { $0 > ends }
        let age = try world.sample("signing_key_age_seconds")
        let signed = Date().timeIntervalSince1970 - age
        let (exit, output) = try GatewayProcess.run(["keys", "rotate", "--data", world.folder])
        #expect(exit == .status(0), "\(output)")
        try blockUntil("signed by the new key") {
            world.hangUp()
            pause(seconds: 0.5)
            let asked = Date().timeIntervalSince1970
            return try asked - world.sample("signing_key_age_seconds") > signed + 10
        }
        let accepted = try world.sample("changes_accepted_total")
        try world.wait("changes_accepted_total") { $0 >= accepted + 20 }
        #expect(try world.sample("streams") == Double(devices))
        #expect(try world.sample("streams_opened_total") == Double(devices))
        fleet.signal(SIGTERM)
        #expect(fleet.waitForExit() == .status(0), "\(fleet.output)")
        let last = try #require(fleet.waitForOutput()).split(separator: "\n").last ?? ""
        let summary = try #require(
            try JSONValue(parsing: Array(last.utf8)).objectValue?["summary"]?.objectValue)
        #expect(summary["lost"] == 0 && summary["stray"] == 0 && summary["unverified"] == 0)
    }
}

extension WatchedGateway {
    fileprivate var http: TestHTTP { gateway.http() }

    /// Returns a sample of the admin page.
    fileprivate func sample(_ name: String) throws -> Double {
        try gateway.metrics()["timeline_gateway_\(name)"] ?? 0
    }

    /// Waits until a sample has the expected value.
    fileprivate func wait(_ name: String, _ isRight: (Double) -> Bool) throws {
        try blockUntil(name) { try isRight(sample(name)) }
    }

    fileprivate func waitForLog(_ text: String) throws {
        try blockUntil(text) { gateway.standardErrorTail.contains(text) }
    }

    fileprivate func hangUp() { _ = kill(gateway.pid, SIGHUP) }
}
