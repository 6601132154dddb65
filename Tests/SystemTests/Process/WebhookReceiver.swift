import Foundation
import GatewayTLS
import GatewayTestSupport
import WidgetModel

/// A webhook server, with another language's TLS and HTTP, that prints each request as JSON.
struct WebhookReceiver {
    /// Prints each request. Answers 500 to the first request of each path that begins with
    /// `/fails-once`, and 503 with a wait of five minutes to paths that begin with `/later`. To
    /// paths that begin with `/held` it answers nothing while it is held.
    private static let handler = """
            seen = set()
            def do_POST(self):
                path = self.path
                say({"path": path, "fields": self.fields(), "body": self.body().decode()})
                held = path.startswith("/held")
                while held and os.path.exists(arguments[0]): time.sleep(0.02)
                fails = path.startswith("/fails-once") and path not in self.seen
                self.seen.add(path)
                later = path.startswith("/later")
                wait = {"retry_after": "300"} if later else {}
                self.answer(503 if later else 500 if fails else 204, **wait)
        """

    private let server: PythonServer
    /// The file that exists while it is held.
    private let gate: String
    /// Its port on `localhost`.
    var port: Int64 { server.port }

    /// Starts it, with its files in a gateway's `folder` and with the gateway's certificate.
    init(in folder: String) throws {
        // Several may have the same folder.
        gate = "\(folder)/receiver-\(UUID()).held"
        server = try PythonServer(
            Self.handler, in: folder,
            certificate: (folder + "/certs/server.pem", folder + "/certs/server.key"),
            arguments: [gate])
    }

    /// The number of requests printed so far.
    var requestCount: Int { server.lines.count }

    /// Leaves requests to `/held` without an answer from now on.
    func hold() throws { try Data().write(to: URL(filePath: gate)) }

    /// Answers them.
    func release() throws { try FileManager.default.removeItem(atPath: gate) }

    /// Waits for the request with that number, counted from 1, and returns it.
    func request(_ number: Int) throws -> JSONObject? { try server.line(number) }

    /// Registers a client that follows the hero, with a webhook at a path of the receiver.
    func register(
        _ client: String = "renderer", at path: String, on gateway: any TestGateway, token: String
    ) throws -> TestHTTPAnswer {
        try gateway.http().register(
            client, app: GameFixture.app, token: token,
            registration(
                showing: ["hero"], platform: "linux",
                delivery: [
                    ["type": "webhook", "url": .string("https://localhost:\(port)\(path)")]
                ]))
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
        (data, ca) = (configuration.folder, configuration.certificates.ca)
        try configuration.write(["webhooks: { enabled: true\(allowed), ca: \(ca) }"])
        receiver = try WebhookReceiver(in: data)
        gateway = try LocalGateway(configuration, clock: clock)
        game = try GameFixture(gateway)
    }

    /// Starts another receiver, which is another host.
    func otherReceiver() throws -> WebhookReceiver { try WebhookReceiver(in: data) }

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
