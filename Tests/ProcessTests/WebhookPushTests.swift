import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// Pushes of a real gateway to a webhook, which another language's TLS and HTTP receive.
    @Suite struct WebhookPushTests {
        /// Prints its port, then each request; answers 500 to the first of each path that says so.
        static let receiver = """
            import http.server, json, ssl, sys
            seen = set()
            class Receiver(http.server.BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def do_POST(self):
                    body = self.rfile.read(int(self.headers["content-length"])).decode()
                    fields = {name.lower(): value for name, value in self.headers.items()}
                    print(json.dumps({"path": self.path, "fields": fields, "body": body}), flush=True)
                    fails = self.path.startswith("/fails-once") and self.path not in seen
                    seen.add(self.path)
                    self.send_response(500 if fails else 204)
                    self.send_header("content-length", "0")
                    self.end_headers()
                def log_message(self, *arguments): pass
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            server.socket = context.wrap_socket(server.socket, server_side=True)
            print(json.dumps({"port": server.server_address[1]}), flush=True)
            server.serve_forever()
            """

        @Test func `a webhook is told what is stale, signed, and again until it takes it`() throws {
            let data = try GatewayProcess.temporaryDirectory()
            let made = try DevelopmentCertificates.ensure(
                in: data, now: Int64(Date().timeIntervalSince1970))
            let script = data + "/receiver.py"
            try Self.receiver.write(toFile: script, atomically: true, encoding: .utf8)
            let receiver = try TestProgram(
                "/usr/bin/python3", [script, made.certificate, made.key])
            let port = try #require(try receiver.json(line: 0)?["port"]?.integerValue)
            let configuration = data + "/gateway.yaml"
            try """
            tls: { certificate: \(made.certificate), key: \(made.key) }
            localIssuer: true
            webhooks: { enabled: true, allowedRanges: [127.0.0.0/8], ca: \(made.ca) }
            """.write(toFile: configuration, atomically: true, encoding: .utf8)
            let gateway = try GatewayProcess(data: data, configuration: configuration)
            let game = try GameFixture(gateway)
            let answer = try gateway.http().register(
                "renderer", app: GameFixture.app, token: game.backend,
                [
                    "platform": "linux",
                    "widgets": [
                        [
                            "kind": "detail", "family": "systemSmall",
                            "parameters": ["character": "hero"],
                        ]
                    ],
                    "delivery": [
                        ["type": "webhook", "url": .string("https://localhost:\(port)/fails-once")]
                    ],
                ])
            let key = try #require(answer["webhookKeys"]?.arrayValue?.first?.stringValue)
            #expect(key.hasPrefix("whpk_"))
            try game.change(gateway.http(), ["hero"], run: "one")
            let first = try #require(try receiver.json(line: 1))
            let second = try #require(try receiver.json(line: 2))
            for request in [first, second] {
                let fields = try #require(request["fields"]?.objectValue)
                #expect(fields["content-type"] == "application/json")
                #expect(fields["webhook-signature"]?.stringValue?.hasPrefix("v1a,") ?? false)
            }
            // The same is said again: it is the same message.
            #expect(first["fields"]?.objectValue?["webhook-id"] != nil)
            #expect(
                first["fields"]?.objectValue?["webhook-id"]
                    == second["fields"]?.objectValue?["webhook-id"])
            let body = try JSONValue(parsing: Array((second["body"]?.stringValue ?? "").utf8))
            let notifications = body.objectValue?["notifications"]?.arrayValue ?? []
            let said = try claims(of: try #require(notifications.first?.stringValue))
            #expect(said.reload.map(\.kind) == ["detail"])
            _ = try Cursor.sequence(body.objectValue?["cursor"]?.stringValue)
            gateway.terminate()
        }

        @Test func `what is delivered verifies, with either key while they are changed`() throws {
            let data = try GatewayProcess.temporaryDirectory()
            let made = try DevelopmentCertificates.ensure(
                in: data, now: Int64(Date().timeIntervalSince1970))
            let script = data + "/receiver.py"
            try Self.receiver.write(toFile: script, atomically: true, encoding: .utf8)
            let receiver = try TestProgram(
                "/usr/bin/python3", [script, made.certificate, made.key])
            let port = try #require(try receiver.json(line: 0)?["port"]?.integerValue)
            let configuration = data + "/gateway.yaml"
            try """
            tls: { certificate: \(made.certificate), key: \(made.key) }
            localIssuer: true
            webhooks: { enabled: true, allowedRanges: [127.0.0.0/8], ca: \(made.ca) }
            """.write(toFile: configuration, atomically: true, encoding: .utf8)
            let gateway = try GatewayProcess(data: data, configuration: configuration)
            let game = try GameFixture(gateway)
            func keys(_ answer: TestHTTPAnswer) -> [String] {
                (answer["webhookKeys"]?.arrayValue ?? []).compactMap(\.stringValue)
            }
            func received(_ line: Int) throws -> (fields: [String: String], body: String) {
                let request = try #require(try receiver.json(line: line))
                let members = request["fields"]?.objectValue?.members ?? []
                let fields = members.map { ($0.name, $0.value.stringValue ?? "") }
                return (
                    Dictionary(fields, uniquingKeysWith: { first, _ in first }),
                    try #require(request["body"]?.stringValue)
                )
            }
            let old = keys(
                try gateway.http().register(
                    "renderer", app: GameFixture.app, token: game.backend,
                    [
                        "platform": "linux",
                        "widgets": [
                            [
                                "kind": "detail", "family": "systemSmall",
                                "parameters": ["character": "hero"],
                            ]
                        ],
                        "delivery": [
                            ["type": "webhook", "url": .string("https://localhost:\(port)/hook")]
                        ],
                    ]))
            #expect(old.count == 1)
            try game.change(gateway.http(), ["hero"], run: "one")
            let first = try received(1)
            #expect(try WebhookCheck.good(first.fields, body: first.body, key: old[0]) == [0])
            #expect(try WebhookCheck.good(first.fields, body: first.body + " ", key: old[0]) == [])
            var later = first.fields
            later["webhook-timestamp"] = later["webhook-timestamp"].flatMap(Int.init).map {
                "\($0 + 1)"
            }
            #expect(try WebhookCheck.good(later, body: first.body, key: old[0]) == [])

            let (exit, output) = try GatewayProcess.run(
                ["keys", "rotate", "--data", data, "--purpose", "webhooks"])
            #expect(exit == .status(0) && output.contains(old[0]), "\(output)")
            // The gateway that runs takes it over, and tells any who registers.
            var both = old
            for _ in 0..<120 where both.count < 2 {
                usleep(500_000)
                both = keys(
                    try gateway.http().request(
                        "PATCH", "/v1/apps/\(GameFixture.app)/clients/renderer",
                        token: game.backend,
                        headers: [("Content-Type", "application/merge-patch+json")], body: "{}"))
            }
            #expect(both.count == 2 && both.first == old.first)
            try game.change(gateway.http(), ["hero"], run: "two")
            let second = try received(2)
            #expect(second.fields["webhook-signature"]?.split(separator: " ").count == 2)
            for (place, key) in both.enumerated() {
                #expect(
                    try WebhookCheck.good(second.fields, body: second.body, key: key) == [place])
            }
            let again = try GatewayProcess.run(
                ["keys", "rotate", "--data", data, "--purpose", "webhooks"])
            #expect(again.exit == .status(1) && again.output.contains("being changed"))
            gateway.terminate()
        }

        @Test func `a webhook at a private address is not asked unless that is allowed`() throws {
            let data = try GatewayProcess.temporaryDirectory()
            let made = try DevelopmentCertificates.ensure(
                in: data, now: Int64(Date().timeIntervalSince1970))
            let script = data + "/receiver.py"
            try Self.receiver.write(toFile: script, atomically: true, encoding: .utf8)
            let receiver = try TestProgram(
                "/usr/bin/python3", [script, made.certificate, made.key])
            let port = try #require(try receiver.json(line: 0)?["port"]?.integerValue)
            let configuration = data + "/gateway.yaml"
            let admin = "127.0.0.1:\(try GatewayProcess.freePort())"
            try """
            tls: { certificate: \(made.certificate), key: \(made.key) }
            localIssuer: true
            webhooks: { enabled: true, ca: \(made.ca) }
            """.write(toFile: configuration, atomically: true, encoding: .utf8)
            let gateway = try GatewayProcess(
                data: data, configuration: configuration, admin: admin)
            let game = try GameFixture(gateway)
            _ = try gateway.http().register(
                "renderer", app: GameFixture.app, token: game.backend,
                [
                    "platform": "linux",
                    "widgets": [
                        [
                            "kind": "detail", "family": "systemSmall",
                            "parameters": ["character": "hero"],
                        ]
                    ],
                    "delivery": [
                        ["type": "webhook", "url": .string("https://localhost:\(port)/private")]
                    ],
                ])
            try game.change(gateway.http(), ["hero"], run: "one")
            let refused =
                #"pushes_total{channel="webhook",outcome="retry",reason="address-not-allowed"} 1"#
            let page = TestHTTP(url: "http://\(admin)", ca: made.ca)
            for _ in 0..<500 {
                if try page.request("GET", "/metrics").text.contains(refused) { break }
                usleep(20_000)
            }
            #expect(try page.request("GET", "/metrics").text.contains(refused))
            #expect(receiver.output.split(separator: "\n").count == 1)
            gateway.terminate()
        }
    }
}
