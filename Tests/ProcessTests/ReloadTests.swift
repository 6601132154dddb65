import Foundation
import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// A configuration that changes while the gateway runs.
    @Suite struct ReloadTests {
        /// A gateway with a configuration file, and the files that it names.
        private struct World {
            let folder: String
            let gateway: GatewayProcess
            let admin: TestHTTP

            private static let repository = URL(filePath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent().path

            init(_ options: [String] = []) throws {
                let folder = try GatewayProcess.temporaryDirectory()
                let port = try FreshnessTests.freePort()
                self.folder = folder
                try FileManager.default.createDirectory(
                    atPath: folder + "/certs", withIntermediateDirectories: true)
                try Self.makeCertificates(in: folder, days: 30)
                let file = folder + "/gateway.yaml"
                try Self.write(options, in: folder)
                gateway = try GatewayProcess(
                    data: folder, configuration: file, admin: "127.0.0.1:\(port)")
                admin = TestHTTP(url: "http://127.0.0.1:\(port)", ca: folder + "/certs/ca.pem")
            }

            /// Makes a server certificate, the authority staying the same.
            static func makeCertificates(in folder: String, days: Int) throws {
                let (exit, output) = try GatewayProcess.run(
                    [
                        "\(repository)/Certs/make-development", folder + "/certs", "--days",
                        "\(days)",
                    ],
                    program: "/usr/bin/env")
                guard exit == .status(0) else { throw WireFault(what: output) }
            }

            /// Writes the configuration anew.
            static func write(_ options: [String], in folder: String) throws {
                let lines = [
                    "publicURL: https://gateway.test", "localIssuer: true",
                    "tls: { certificate: \(folder)/certs/server.pem, key: \(folder)/certs/server.key }",
                ]
                try (lines + options).joined(separator: "\n")
                    .write(toFile: folder + "/gateway.yaml", atomically: true, encoding: .utf8)
            }

            var http: TestHTTP { gateway.http() }

            /// A sample of the admin page.
            func sample(_ name: String) throws -> Double {
                let page = try admin.request("GET", "/metrics").text
                let line = page.split(separator: "\n").first {
                    $0.hasPrefix("timeline_gateway_\(name) ")
                }
                return line?.split(separator: " ").last.flatMap { Double($0) } ?? 0
            }

            /// Waits until a sample is as it should be.
            func wait(_ name: String, _ isRight: (Double) -> Bool) throws {
                for _ in 0..<600 {
                    if try isRight(sample(name)) { return }
                    Thread.sleep(forTimeInterval: 0.05)
                }
                throw WireFault(what: "\(name) stays \(try sample(name))")
            }

            func hangUp() { _ = kill(gateway.pid, SIGHUP) }

            func remove() {
                gateway.kill()
                try? FileManager.default.removeItem(atPath: folder)
            }
        }

        @Test func `an issuer is believed from a SIGHUP on, and no stream notices`() throws {
            let world = try World()
            defer { world.remove() }
            let game = try GameFixture(world.gateway)
            let client = try game.client("client", ["a"])
            let stream = game.stream(client)
            try #require(stream.head()?.status == 200)
            let key = try SigningKey(generating: .edDSA)
            try Data(try key.publicKey.pem()).write(
                to: URL(filePath: world.folder + "/issuer.pem"))
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
            try World.write(
                [
                    "issuers:",
                    "  - { iss: https://accounts.test, apps: [\(GameFixture.app)],"
                        + " scopes: [changes:write], keys: \(world.folder)/issuer.pem }",
                ], in: world.folder)
            world.hangUp()
            try world.wait("configuration_reloads_total{outcome=\"applied\"}") { $0 >= 1 }
            #expect(try post("2") == 202)
            var isTold = false
            while !isTold, case .block(let block) = stream.next(timeout: 20) {
                isTold = block.event == "reload"
            }
            #expect(isTold)
            #expect(try world.sample("streams_opened_total") == 1)
            stream.close()
            #expect(world.gateway.terminate() == .status(0))
        }

        @Test func `files are noticed by themselves, and wrong ones change nothing`() throws {
            let world = try World()
            defer { world.remove() }
            let ends = try world.sample("tls_certificate_not_after_seconds")
            // A certificate without its key: between two writes, or by mistake.
            let key = try Data(contentsOf: URL(filePath: world.folder + "/certs/server.key"))
            try Data("nonsense".utf8).write(to: URL(filePath: world.folder + "/certs/server.key"))
            try world.wait("configuration_reloads_total{outcome=\"refused\"}") { $0 >= 1 }
            #expect(try world.http.request("GET", "/.well-known/jwks.json").status == 200)
            #expect(world.gateway.standardErrorTail.contains("tls.key"))
            try key.write(to: URL(filePath: world.folder + "/certs/server.key"))
            try world.wait("configuration_reloads_total{outcome=\"unchanged\"}") { $0 >= 1 }
            try World.makeCertificates(in: world.folder, days: 60)
            try world.wait("tls_certificate_not_after_seconds") { $0 > ends + 29 * 86_400 }
            #expect(try world.http.request("GET", "/.well-known/jwks.json").status == 200)
            let ready = try world.admin.request("GET", "/readyz")
            #expect(ready.status == 200, "\(ready.text)")
        }

        @Test func `operators ask what a configuration would change, and have it reloaded`() throws
        {
            let world = try World()
            defer { world.remove() }
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
            let (exit, output) = try GatewayProcess.run(
                [
                    "config", "diff", file, "--url", world.gateway.url, "--ca", world.gateway.ca,
                    "--token", all,
                ], program: GatewayProcess.program(named: "timelinectl"))
            #expect(exit == .status(0), "\(output)")
            #expect(output.contains("retention.age  default  2d"), "\(output)")
            let wrong = try ask("diff", all, "lisen: x\n")
            #expect(wrong.status == 422 && wrong.text.contains("did you mean `listen`?"))
            #expect(try ask("reload", all, nil)["changes"] == [])
            try World.write(["log: { level: debug }"], in: world.folder)
            // Who is first, the request or the watch, tells the change.
            #expect(try ask("reload", all, nil).status == 200)
            try world.wait("configuration_reloads_total{outcome=\"applied\"}") { $0 == 1 }
            try World.write(["log: { level: lots }"], in: world.folder)
            let refused = try ask("reload", all, nil)
            #expect(refused.status == 422 && refused.text.contains("log.level"))
        }

        @Test func `certificates and keys change under thousands of streams, of which none drops`()
            throws
        {
            let devices = 5_000
            let world = try World([
                "signing: { publishLead: 12s }", "limits: { connections: 20000 }",
            ])
            defer { world.remove() }
            let backend = try world.gateway.token(
                app: CharacterGame.app,
                scope: "catalog:write changes:write clients:write tokens:issue", sub: "backend")
            let put = try world.http.request(
                "PUT", "/v1/apps/\(CharacterGame.app)/catalog", token: backend,
                headers: [("Content-Type", "application/yaml")], body: CharacterGame.catalogYAML)
            #expect(put.status == 201)
            let fleet = try TestProgram(
                GatewayProcess.program(named: "timelinectl"),
                [
                    "device", "--url", world.gateway.url, "--ca", world.gateway.ca,
                    "--token", backend, "--app", CharacterGame.app, "--json", "--devices",
                    "\(devices)", "--items", "5000", "--post", "20", "--duration", "35",
                    "--build-ms", "1", "--patience", "60",
                ])
            var waited = 0
            while try world.sample("streams") < Double(devices) {
                guard fleet.waitForExit(seconds: 0.2) == nil, waited < 2_000 else {
                    throw WireFault(what: "the devices did not connect: \(fleet.output)")
                }
                waited += 1
            }
            let signed = try world.sample("signing_key_age_seconds")
            for round in 1...2 {
                let ends = try world.sample("tls_certificate_not_after_seconds")
                try World.makeCertificates(in: world.folder, days: 30 + 30 * round)
                world.hangUp()
                try world.wait("tls_certificate_not_after_seconds") { $0 > ends }
                let (exit, output) = try GatewayProcess.run([
                    "keys", "rotate", "--data", world.folder,
                ])
                #expect(exit == .status(0), "\(output)")
                // Clients ask for keys at most every 10 s: those that asked just now have it.
                Thread.sleep(forTimeInterval: 13)
                world.hangUp()
            }
            try world.wait("signing_key_age_seconds") { $0 < signed }
            #expect(try world.sample("streams") == Double(devices))
            #expect(try world.sample("streams_opened_total") == Double(devices))
            let exit = fleet.waitForExit(seconds: 180)
            #expect(exit == .status(0), "\(fleet.output)")
            let last = fleet.output.split(separator: "\n").last ?? ""
            let summary = try #require(
                try JSONValue(parsing: Array(last.utf8)).objectValue?["summary"]?.objectValue)
            #expect(summary["lost"] == 0 && summary["stray"] == 0 && summary["unverified"] == 0)
            #expect(summary["posted"]?.integerValue ?? 0 > 0)
        }
    }
}
