import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// Pushes of a gateway to the push services of browsers, and to FCM.
@Suite(.alone) struct ServicePushTests {
    /// Judged by the Python libraries that browsers' vendors use.
    @Test func `others decrypt what a browser is pushed, and know who sent it`() async throws {
        let clock = HeldClock()
        let world = try ServiceFixture(.webPush, clock: clock)
        let receiver = try WebPushReceiver(in: world.folder)
        // As many as a notification names, instead of all of their kind.
        let long = (0..<60).map { "\($0)" + String(repeating: "x", count: 100) }
        try world.register("phone", ["hero"] + long, at: receiver.origin + "/anna")
        try world.game.change(world.gateway.http(), ["hero"], run: "one")
        try await eventually("pushed to") {
            clock.advance(to: clock.now + 1_000)
            return !receiver.requests.isEmpty
        }
        let first = try #require(receiver.requests.first)
        let answer = try world.decrypted(first, at: receiver.origin)
        let notifications = answer["notifications"]?.arrayValue ?? []
        let said = try claims(of: try #require(notifications.first?.stringValue))
        #expect(said.reload.map(\.kind) == ["detail"])
        _ = try Cursor.sequence(answer["cursor"]?.stringValue)
        let fields = try #require(first["fields"]?.objectValue)
        #expect(fields["urgency"] == "normal" && fields["topic"] == "timeline-reload")

        // Too much for a push: the browser is only told to poll.
        try world.game.change(world.gateway.http(), long, run: "two")
        var bare: JSONObject?
        try await eventually("told to poll") {
            clock.advance(to: clock.now + 10_000)
            bare = receiver.requests.first { $0["body"] == "" }?["fields"]?.objectValue
            return bare != nil
        }
        #expect(bare?["content-length"] == "0" && bare?["content-encoding"] == nil)
        await world.stop()
    }

    @Test func `who registers learns the key, and aims no push into our network`() async throws {
        let world = try ServiceFixture(.webPush, clock: HeldClock(), allowed: "")
        let (gateway, key) = (world.gateway, world.sender.applicationServerKey)
        let token = try gateway.token(app: GameFixture.app, scope: "client", sub: "phone")
        func answer(_ endpoint: String) throws -> TestHTTPAnswer {
            try gateway.http().register(
                "phone", app: GameFixture.app, token: token,
                registration(showing: ["hero"], delivery: [world.address(endpoint)]))
        }
        #expect(try answer("https://push.example/anna")["applicationServerKey"] == .string(key))
        let refused = try answer("https://127.0.0.1:\(world.service.port)/push/anna")
        #expect(refused.status == 422 && refused.text.contains("endpoint"), "\(refused.text)")
        // A name is resolved when it is pushed to.
        _ = try answer("https://localhost:\(world.service.port)/push/anna")
        try world.game.change(gateway.http(), ["hero"], run: "one")
        try await world.until("refused") { outcomes in
            outcomes["retry address-not-allowed", default: 0] >= 1
        }
        #expect(world.service.record.requests == 0)
        await world.stop()
    }

    /// Each device has one push a day. Those that may have arrived count; those that were rejected,
    /// or never processed, do not.
    @Test(arguments: [SimulatedService.webPush, .fcm])
    func `5 % of every fault: budgets are exact, and nothing is missed`(
        service: SimulatedService
    ) async throws {
        let clock = HeldClock()
        let faults = PushBehaviour.faults(of: service, wall: 0)
        let world = try ServiceFixture(
            service, faults: faults.map { PushFault($0, share: 50_000) }, clock: clock,
            options: ["interval: 1s", "widgetsPerDay: 1"])
        let names = (0..<40).map { "device\($0)" }
        for name in names { try world.register(name, ["hero"]) }
        try world.game.change(world.gateway.http(), ["hero"], run: "one")
        func number(_ outcomes: [String: Int], _ words: [String]) -> Int {
            outcomes.reduce(0) { sum, outcome in
                sum + (words.contains { outcome.key.hasPrefix($0) } ? outcome.value : 0)
            }
        }
        let ended = ["sent", "dropped", "quarantined"]
        let lost = ["timed-out", "connection-ended", "stream-reset"].map { "retry \($0)" }
        try await world.until("all had their push") { number($0, ended + lost) >= names.count }
        // Whatever else was due meanwhile is withheld.
        for _ in 0..<30 { clock.advance(to: clock.now + 10_000) }
        #expect(try number(world.outcomes(), ended + lost) == names.count)

        try world.reconfigure(["interval: 1s", "widgetsPerDay: 1000"])
        // A device that has bad luck again and again waits for hours.
        try await world.until("all were told", step: 600_000) {
            number($0, ended) >= names.count
        }
        let record = world.service.record
        #expect(record.violations.isEmpty, "\(record.violations)")
        for name in names {
            let device = try #require(record.devices[name])
            let isRefused = [401, 403].contains(device.last?.answer?.status)
            #expect(device.taken >= 1 || device.isDead || isRefused, "\(name): \(device)")
        }
        await world.stop()
    }

    @Test func `FCM's access token is replaced in time, and when it is rejected`() async throws {
        let clock = HeldClock()
        let world = try ServiceFixture(.fcm, clock: clock)
        world.service.script("anna", [.answer(PushAnswer(status: 401)), .answer(.taken)])
        try world.register("anna", ["hero"])
        try world.game.change(world.gateway.http(), ["hero"], run: "one")
        try await world.until("pushed to") { $0["sent"] == 1 }
        #expect(world.service.record.accessTokens == 2)
        clock.advance(to: clock.now + 7_200_000)
        // The fixture's own token has expired, too.
        let token = try world.gateway.token(app: GameFixture.app, scope: "changes:write")
        let change = event(source: "two", id: "0", entity: "Character", key: "hero")
        let posted = try world.gateway.http().post([change], app: GameFixture.app, token: token)
        #expect(posted.status == 202)
        try await world.until("pushed to again") { $0["sent"] == 2 }
        let record = world.service.record
        #expect(record.accessTokens == 3 && record.violations.isEmpty, "\(record.violations)")
        let body = try #require(record.devices["anna"]?.pushes.last?.request.body)
        let message = try JSONValue(parsing: body).objectValue?["message"]?.objectValue
        let said = message?["data"]?.objectValue?["timeline"]?.stringValue ?? ""
        let answer = try JSONValue(parsing: Array(said.utf8)).objectValue
        let notification = try #require(
            answer?["notifications"]?.arrayValue?.first?.stringValue)
        #expect(try claims(of: notification).reload.map(\.kind) == ["detail"])
        await world.stop()
    }

    @Test func `a service account that is rejected stops FCM until it is replaced`() async throws {
        let world = try ServiceFixture(.fcm, clock: HeldClock())
        try world.writeAccount(ServiceAccountKey())
        try world.reconfigure([])
        try world.register("anna", ["hero"])
        try world.game.change(world.gateway.http(), ["hero"], run: "one")
        try await world.until("stopped") { $0["stopped invalid_grant"] == 1 }
        try world.writeAccount()
        try world.reconfigure([])
        try await world.until("pushed to") { $0["sent"] == 1 }
        await world.stop()
    }

    @Test func `a subscription that has ended is taken out of the registration`() async throws {
        let world = try ServiceFixture(.webPush, clock: HeldClock())
        world.service.script("anna", [.answer(PushAnswer(status: 410))])
        try world.register("anna", ["hero"])
        try world.game.change(world.gateway.http(), ["hero"], run: "one")
        var delivery: [JSONValue] = []
        try await eventually("removed", details: { "\(delivery)" }) {
            let answer = try world.gateway.http().request(
                "GET", "/v1/apps/\(GameFixture.app)/clients/anna", token: world.game.backend)
            delivery = answer["delivery"]?.arrayValue ?? []
            return delivery == [["type": "stream"]]
        }
        await world.stop()
    }

    @Test func `a rejected key is an event, and another key is used at once`() async throws {
        let world = try ServiceFixture(.webPush, clock: HeldClock())
        world.service.script("anna", [.answer(PushAnswer(status: 403)), .answer(.taken)])
        try world.register("anna", ["hero"])
        try world.register("bert", ["hero"])
        try world.game.change(world.gateway.http(), ["hero"], run: "one")
        try await world.until("both had an answer") {
            $0["quarantined 403"] == 1 && $0["sent"] == 1
        }
        try SigningKey(generating: .es256).save(to: world.folder + "/vapid.pem")
        try world.reconfigure([])
        try await world.until("pushed with the new key") { $0["sent"] == 2 }
        #expect(world.service.record.devices["anna"]?.taken == 1)
        await world.stop()
    }
}

/// A gateway, and a push service that behaves and fails like those of browsers, or like FCM.
final class ServiceFixture: Sendable {
    let gateway: any TestGateway
    let service: APNsServer
    let game: GameFixture
    /// The key of the app at browsers' services.
    let sender: SigningKey
    private let kind: SimulatedService
    /// The key of every browser.
    private let browser: SigningKey
    /// The key of the app's service account.
    private let accountKey: ServiceAccountKey
    private let account: FCMSender
    private let configuration: GatewayConfiguration
    private let clock: HeldClock
    private let allowed: String
    /// The secret of every browser.
    private static let auth = Base64.url.string([UInt8](repeating: 7, count: 16))

    var folder: String { configuration.folder }

    init(
        _ kind: SimulatedService, faults: [PushFault] = [], clock: HeldClock,
        options: [String] = [], allowed: String = "allowedRanges: [127.0.0.0/8], "
    ) throws {
        (self.kind, self.clock, self.allowed) = (kind, clock, allowed)
        configuration = try GatewayConfiguration()
        sender = try SigningKey(generating: .es256)
        browser = try SigningKey(generating: .es256)
        accountKey = try ServiceAccountKey()
        account = FCMSender(
            project: "project", email: "gateway@test", keyID: "1", key: accountKey.publicKey)
        try sender.save(to: configuration.folder + "/vapid.pem")
        try browser.save(to: configuration.folder + "/browser.pem")
        var terms = SimulatedAPNs.Terms(kind, senders: [account])
        terms.faults = faults
        let made = configuration.certificates
        var settings = APNsServer.Settings(
            certificate: .file(made.certificate), key: .file(made.key))
        settings.clock = { .init(now: clock.now, wall: clock.wall) }
        service = try APNsServer(terms, settings)
        let url = "https://localhost:\(service.port)"
        try Self.write(account.document(accountKey, url: url), in: configuration.folder)
        try Self.write(configuration, options, allowed: allowed, kind, port: service.port)
        gateway = try LocalGateway(configuration, clock: clock)
        game = try GameFixture(gateway)
    }

    private static func write(_ document: JSONValue, in folder: String) throws {
        try document.text.write(
            toFile: folder + "/account.json", atomically: true, encoding: .utf8)
    }

    private static func write(
        _ configuration: GatewayConfiguration, _ options: [String], allowed: String,
        _ kind: SimulatedService, port: Int
    ) throws {
        let (app, folder) = (GameFixture.app, configuration.folder)
        let section =
            kind == .fcm
            ? ["fcm:", "  - { app: \(app), serviceAccount: \(folder)/account.json }"]
            : [
                "webPush:",
                "  - { app: \(app), key: \(folder)/vapid.pem, subject: \"mailto:o@example.com\" }",
            ]
        try configuration.write(
            section + [
                "webhooks: { \(allowed)ca: \(configuration.certificates.ca) }", "push:",
                "  fcm: localhost:\(port)",
            ] + options.map { "  \($0)" })
    }

    /// Replaces the file of the service account: with the service's, or with one that has `key`.
    func writeAccount(_ key: ServiceAccountKey? = nil) throws {
        let url = "https://localhost:\(service.port)"
        try Self.write(account.document(key ?? accountKey, url: url), in: folder)
    }

    /// Rewrites the configuration, and has the gateway read it and its files.
    func reconfigure(_ options: [String]) throws {
        try Self.write(configuration, options, allowed: allowed, kind, port: service.port)
        let answer = try gateway.reloadConfiguration()
        guard answer.status == 200 else { throw TestFailure(answer.text) }
    }

    func address(_ endpoint: String) -> JSONValue {
        [
            "type": "webpush", "endpoint": .string(endpoint),
            "keys": [
                "p256dh": .string(browser.applicationServerKey), "auth": .string(Self.auth),
            ],
        ]
    }

    /// Registers a device that shows characters, by default with a token or subscription of its
    /// name.
    func register(_ client: String, _ characters: [String], at endpoint: String? = nil) throws {
        let endpoint = endpoint ?? "https://localhost:\(service.port)/push/\(client)"
        let pushed: JSONValue =
            kind == .fcm ? ["type": "fcm", "token": .string(client)] : address(endpoint)
        let answer = try gateway.http().register(
            client, app: GameFixture.app, token: game.backend,
            registration(
                showing: characters, platform: "web",
                delivery: [["type": "stream"], pushed]))
        guard answer.status == 201 else { throw TestFailure(answer.text) }
    }

    /// The number of pushes by outcome and, if they were not accepted, reason.
    func outcomes() throws -> [String: Int] {
        let pushes = try gateway.metrics().labelled("timeline_gateway_pushes_total")
        return pushes.reduce(into: [:]) { outcomes, push in
            let reason = push.labels["reason"] ?? ""
            let name = (push.labels["outcome"] ?? "") + (reason.isEmpty ? "" : " " + reason)
            outcomes[name, default: 0] += Int(push.value)
        }
    }

    /// Waits until a condition holds for the outcomes; `step` milliseconds pass with each look.
    func until(
        _ what: String, step: Int64 = 10_000, _ holds: ([String: Int]) -> Bool
    ) async throws {
        var outcomes: [String: Int] = [:]
        try await eventually(what, details: { "\(outcomes); \(gateway.standardErrorTail)" }) {
            clock.advance(to: clock.now + step)
            outcomes = try self.outcomes()
            return holds(outcomes)
        }
    }

    /// Returns what a push says, judged by other libraries. Throws ``TestFailure`` if they object.
    func decrypted(_ request: JSONObject, at origin: String) throws -> JSONObject {
        let script = folder + "/judge.py"
        try Self.judge.write(toFile: script, atomically: true, encoding: .utf8)
        let field = request["fields"]?.objectValue?["authorization"]?.stringValue ?? ""
        let (exit, output) = try GatewayProcess.run(
            [
                "python3", script, folder + "/browser.pem", Self.auth, field,
                sender.applicationServerKey, origin, request["body"]?.stringValue ?? "",
            ], program: "/usr/bin/env")
        guard exit == .status(0),
            let answer = try JSONValue(parsing: Array(output.utf8)).objectValue
        else { throw TestFailure("the push is not as it must be: \(output)") }
        return answer
    }

    private static let judge = """
        import base64, json, sys, time
        import http_ece
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from py_vapid import Vapid02

        key, auth, field, sender, origin, body = sys.argv[1:]
        def raw(text): return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        assert Vapid02.verify(field), "the token is not valid"
        parts = dict(part.split("=", 1) for part in field.removeprefix("vapid ").split(","))
        assert parts["k"] == sender, "the key is another one"
        claims = json.loads(raw(parts["t"].split(".")[1]))
        assert claims["aud"] == origin and claims["sub"] == "mailto:o@example.com", claims
        assert 0 < claims["exp"] - time.time() <= 86400, claims
        with open(key, "rb") as file: private = load_pem_private_key(file.read(), None)
        sys.stdout.buffer.write(http_ece.decrypt(
            base64.b64decode(body), private_key=private, auth_secret=raw(auth)))
        """

    func stop() async {
        gateway.terminate()
        await service.stop()
    }
}

/// A push service, with another language's TLS and HTTP, that prints each request as JSON.
private struct WebPushReceiver {
    private static let handler = """
            def do_POST(self):
                import base64
                body = base64.b64encode(self.body()).decode()
                say({"path": self.path, "fields": self.fields(), "body": body})
                self.answer(201, location="/message/1")
        """

    private let server: PythonServer
    var origin: String { "https://localhost:\(server.port)" }

    init(in folder: String) throws {
        server = try PythonServer(
            Self.handler, in: folder,
            certificate: (folder + "/certs/server.pem", folder + "/certs/server.key"))
    }

    /// The requests so far.
    var requests: [JSONObject] { server.lines }
}
