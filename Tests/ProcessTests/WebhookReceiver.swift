import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// A webhook server, with another language's TLS and HTTP, that prints each request as JSON.
struct WebhookReceiver {
    /// Prints its port, then each request. Answers 500 to the first request of each path that
    /// begins with `/fails-once`, and 503 with a wait of five minutes to paths that begin with
    /// `/later`. To paths that begin with `/held` it answers nothing while it is held.
    private static let script = """
        import http.server, json, os, ssl, sys, time
        seen = set()
        class Receiver(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                fields = {name.lower(): value for name, value in self.headers.items()}
                print(json.dumps({"path": self.path, "fields": fields, "body": body}), flush=True)
                held = self.path.startswith("/held")
                while held and os.path.exists(sys.argv[3]): time.sleep(0.02)
                fails = self.path.startswith("/fails-once") and self.path not in seen
                seen.add(self.path)
                later = self.path.startswith("/later")
                self.send_response(503 if later else 500 if fails else 204)
                if later: self.send_header("retry-after", "300")
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
    private static let status = "500 if fails else 204"

    private let program: TestProgram
    /// The file that exists while it is held.
    private let gate: String
    /// Its port on `localhost`.
    let port: Int64

    /// Starts it, with its script in `folder`.
    ///
    /// - Parameter status: The status of its answers, as a Python expression; by default the
    ///   script's.
    init(
        in folder: String, certificate: String, key: String, status: String? = nil
    ) throws {
        // Several may have the same folder.
        let script = "\(folder)/receiver-\(UUID()).py"
        gate = script + ".held"
        try Self.script.replacing(Self.status, with: status ?? Self.status)
            .write(toFile: script, atomically: true, encoding: .utf8)
        program = try TestProgram("/usr/bin/python3", [script, certificate, key, gate])
        port = try #require(try program.json(line: 0)?["port"]?.integerValue)
    }

    /// The number of requests printed so far.
    var requestCount: Int { program.output.split(separator: "\n").count - 1 }

    /// Leaves requests to `/held` without an answer from now on.
    func hold() throws { try Data().write(to: URL(filePath: gate)) }

    /// Answers them.
    func release() throws { try FileManager.default.removeItem(atPath: gate) }

    /// Waits for the request with that number, counted from 1, and returns it.
    func request(_ number: Int) throws -> JSONObject? { try program.json(line: number) }

    /// Registers a client that follows the hero, with a webhook at a path of the receiver.
    func register(
        _ client: String = "renderer", at path: String, on gateway: any TestGateway, token: String
    ) throws -> TestHTTPAnswer {
        try gateway.http().register(
            client, app: GameFixture.app, token: token,
            [
                "platform": "linux",
                "widgets": [
                    [
                        "kind": "detail", "family": "systemSmall",
                        "parameters": ["character": "hero"],
                    ]
                ],
                "delivery": [
                    ["type": "webhook", "url": .string("https://localhost:\(port)\(path)")]
                ],
            ])
    }
}

/// A gateway, and a receiver that it may push to.
struct WebhookFixture {
    /// The gateway's data directory.
    let data: String
    /// The file of the certificates to trust.
    let ca: String
    let receiver: WebhookReceiver
    let gateway: LocalGateway
    let game: GameFixture
    let configuration: GatewayConfiguration

    /// - Parameters:
    ///   - allowed: Further configuration of webhooks; by default it permits this machine's
    ///     addresses.
    ///   - clock: The gateway's clock.
    init(
        allowed: String = ", allowedRanges: [127.0.0.0/8]", clock: HeldClock? = nil
    ) throws {
        configuration = try GatewayConfiguration()
        let certificates = configuration.certificates
        (data, ca) = (configuration.folder, certificates.ca)
        try configuration.write(["webhooks: { enabled: true\(allowed), ca: \(ca) }"])
        receiver = try WebhookReceiver(
            in: data, certificate: certificates.certificate, key: certificates.key)
        gateway = try LocalGateway(configuration, clock: clock)
        game = try GameFixture(gateway)
    }

    /// Starts another receiver, which is another host.
    func otherReceiver() throws -> WebhookReceiver {
        let certificates = configuration.certificates
        return try WebhookReceiver(
            in: data, certificate: certificates.certificate, key: certificates.key)
    }

    /// Registers a client that follows the hero, with a webhook at a path of the receiver.
    func register(at path: String) throws -> TestHTTPAnswer {
        try receiver.register(at: path, on: gateway, token: game.backend)
    }

    /// Waits until a push that failed is to be sent again; returns its address, as explained.
    func untilRetried() throws -> JSONObject {
        var address: JSONObject = [:]
        try blockUntil("to be asked again") {
            let document = try gateway.http().explained(
                "renderer", app: GameFixture.app, token: game.backend)
            address = document["addresses"]?.arrayValue?.first?.objectValue ?? [:]
            return address["retryAt"] != nil
        }
        return address
    }
}
