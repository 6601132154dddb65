import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// Pushes of a gateway to the push services of browsers, and to FCM.
@Suite(.alone) struct ServicePushTests {
    private static let hasJudge =
        (try? GatewayProcess.run(
            ["python3", "-c", "import http_ece, py_vapid"], program: "/usr/bin/env"
        ).exit) == .status(0)

    /// Judged by the Python libraries that browsers' vendors use.
    @Test(.enabled(if: hasJudge, "python3 with http-ece and py-vapid is not installed"))
    func `others decrypt what a browser is pushed, and know who sent it`() async throws {
        let clock = HeldClock()
        let world = try ServiceFixture(.webPush, clock: clock)
        let receiver = try WebPushReceiver(in: world.folder)
        // Few enough to be named one by one, and too long for a push.
        let long = (0..<40).map { "\($0)" + String(repeating: "x", count: 100) }
        try world.register("phone", ["hero"] + long, at: receiver.origin + "/anna")
        try world.game.change(world.gateway.http(), ["hero"], run: "one")
        try await eventually("pushed to") {
            clock.advance(to: clock.now + 1_000)
            return !receiver.requests.isEmpty
        }
        let first = try #require(receiver.requests.first)
        let fields = try #require(first["fields"]?.objectValue)
        let text = try world.decrypted([.object(first)], at: receiver.origin)[0]
        #expect(try world.named(in: text) == ["detail character=hero"])
        let cursor = try JSONValue(parsing: Array(text.utf8)).objectValue?["cursor"]
        _ = try Cursor.sequence(cursor?.stringValue)
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
        let world = try ServiceFixture(.webPush, clock: HeldClock(), isLocal: false)
        let (gateway, key) = (world.gateway, world.sender.applicationServerKey)
        let token = try gateway.token(app: GameFixture.app, scope: "client", sub: "phone")
        func answer(_ endpoint: String, key: String? = nil) throws -> TestHTTPAnswer {
            try gateway.http().register(
                "phone", app: GameFixture.app, token: token,
                registration(showing: ["hero"], delivery: [world.address(endpoint, key: key)]))
        }
        #expect(try answer("https://push.example/anna")["applicationServerKey"] == .string(key))
        let refused = try answer("https://127.0.0.1:\(world.service.port)/push/anna")
        #expect(refused.status == 422 && refused.text.contains("endpoint"), "\(refused.text)")
        // A point that is not on the curve could never be encrypted for.
        let stray = Base64.url.string([4] + [UInt8](repeating: 1, count: 64))
        #expect(try answer("https://push.example/anna", key: stray).status == 422)
        // A name is resolved when it is pushed to.
        _ = try answer("https://localhost:\(world.service.port)/push/anna")
        try world.game.change(gateway.http(), ["hero"], run: "one")
        try await world.until("refused") { outcomes in
            outcomes["retry address-not-allowed", default: 0] >= 1
        }
        #expect(world.service.record.requests == 0)
        // Once it is allowed, the push does not wait for a minute.
        try world.reconfigure([])
        try await world.until("pushed to", step: 1) { $0["sent"] == 1 }
        await world.stop()
    }

    /// Returns what happens to the first pushes to a device: 5 % of every fault. Only the very
    /// first may take real time, which pushes made at once spend together.
    private static func script(
        _ faults: [PushBehaviour], _ random: inout SplitMix64
    ) -> [PushBehaviour] {
        (0..<6).map { place in
            let draw = random.below(20)
            guard draw < faults.count, place < 5 else { return .take }
            switch faults[draw] {
            case .silence, .slow: return place == 0 ? faults[draw] : .take
            default: return faults[draw]
            }
        }
    }

    /// Each device has one push a day. Those that may have arrived count; those that were rejected,
    /// or never processed, do not.
    @Test(arguments: [SimulatedService.webPush, .fcm])
    func `5 % of every fault: budgets are exact, and nothing is missed`(
        service: SimulatedService
    ) async throws {
        let clock = HeldClock()
        let world = try ServiceFixture(
            service, clock: clock, options: ["interval: 1s", "widgetsPerDay: 1"])
        let faults = PushBehaviour.faults(of: service, wall: 0)
        var random = SplitMix64(seed: 1)
        let names = (0..<40).map { "device\($0)" }
        for name in names {
            try world.register(name, ["hero", "friend", "clock"])
            world.service.script(name, Self.script(faults, &random))
        }
        let unavailable = PushBehaviour.answer(PushAnswer(status: 503))
        world.service.script(
            PushRequest.tokenPath, [unavailable, .resetConnection(isTaken: false), .take])
        // All have had one push, but those whose address is dead, or whose push was given up.
        func check(_ change: UInt64, number: Int) async throws {
            let standing = try await world.settled(change, mayBeWithheld: true)
            let outcomes = try world.outcomes()
            let sent = outcomes["sent"] ?? 0
            let lost = ["timed-out", "silent", "connection-ended", "stream-reset"].reduce(0) {
                $0 + outcomes["retry " + $1, default: 0]
            }
            let sum = sent + lost + (standing["unreachable"] ?? 0)
            #expect(sum == number && sent > 0 && lost > 0, "\(outcomes) \(standing)")
            if number == names.count {
                #expect(standing["sent"] == sent && standing["withheld"] == lost)
            }
            let devices = world.service.record.devices
            for name in names { #expect(devices[name]?.taken ?? 0 <= 1, "\(name)") }
        }
        try await check(try world.change(["hero"], run: "one"), number: names.count)
        // A push to another device shows that the change was decided for all. It may be lost with a
        // connection that a device ends whose first push was given up.
        try world.register("marker", ["marker"])
        let second = try world.change(["marker", "hero"], run: "two")
        try await world.until("the marker was pushed to") { _ in
            let pushes = try world.gateway.http().request(
                "GET", "/v1/apps/\(GameFixture.app)/attempts?client=marker", token: world.token())
            return pushes["attempts"]?.arrayValue?.isEmpty == false
        }
        try await check(second, number: names.count + 1)

        for name in names where world.service.record.devices[name]?.isDead == false {
            world.service.script(name, Array(Self.script(faults, &random).dropFirst()))
        }
        // The access token expires.
        world.service.script(
            PushRequest.tokenPath,
            [unavailable, .refuseStream, .resetStream(isTaken: false), .take])
        clock.advance(to: clock.now + 7_200_000)
        try world.reconfigure(["interval: 1s", "widgetsPerDay: 1000"])
        try world.change(["friend"], run: "three")
        clock.advance(to: clock.now + 60_000)
        // Only another change makes up for a push that was given up.
        var (run, unreachable) = (0, 0)
        repeat {
            run += 1
            let last = try world.change(["clock"], run: "clock-\(run)")
            unreachable = try await world.settled(last)["unreachable"] ?? 0
        } while run < 10 && world.service.record.devices.values.contains(where: \.isGivenUp)
        let record = world.service.record
        #expect(record.violations.isEmpty, "\(record.violations)")
        let living = names.filter { record.devices[$0]?.isDead == false }
        #expect(!living.isEmpty && unreachable == names.count - living.count)
        // A service keeps only the last push, which must say everything, or nothing but to poll.
        if service == .fcm || Self.hasJudge {
            let all = Set(["hero", "friend", "clock"].map { "detail character=" + $0 })
            let named = try world.lastNamed(living)
            #expect(named.contains(all))
            for (name, said) in zip(living, named) {
                #expect(said.map { $0 == all } ?? true, "\(name): \(said ?? [])")
            }
        }
        await world.stop()
    }

    @Test func `what FCM finds invalid is sent once more, without content`() async throws {
        let world = try ServiceFixture(.fcm, clock: HeldClock())
        let answer = try #require(PushAnswer.fcm(code: "INVALID_ARGUMENT", invalid: "message.data"))
        world.service.script("anna", [.answer(answer), .take])
        world.service.script("bert", [.answer(answer)])
        for name in ["anna", "bert"] { try world.register(name, ["hero"]) }
        try world.change(["hero"], run: "one")
        try await world.until("both had an answer") {
            $0["sent"] == 1 && $0["given-up INVALID_ARGUMENT"] == 1
        }
        #expect(try world.lastNamed(["anna"]) == [nil])
        #expect(world.service.record.devices["bert"]?.requests == 2)
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
        try world.change(["hero"], run: "two")
        try await world.until("pushed to again") { $0["sent"] == 2 }
        let record = world.service.record
        #expect(record.accessTokens == 3 && record.violations.isEmpty, "\(record.violations)")
        #expect(try world.lastNamed(["anna"]) == [["detail character=hero"]])
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

    @Test func `a replaced key is rejected until the browser subscribes again`() async throws {
        let world = try ServiceFixture(.webPush, clock: HeldClock(), options: ["interval: 1s"])
        try world.register("anna", ["hero"])
        try world.change(["hero"], run: "one")
        try await world.until("pushed to") { $0["sent"] == 1 }
        // A subscription belongs to the key that it was made for.
        try SigningKey(generating: .es256).save(to: world.folder + "/vapid.pem")
        try world.reconfigure(["interval: 1s"])
        try world.change(["hero"], run: "two")
        try await world.until("rejected") { $0["retry 403", default: 0] >= 1 }
        let explained = try world.gateway.http().explained(
            "anna", app: GameFixture.app, token: world.token())
        let address = explained["addresses"]?.arrayValue?.first?.objectValue
        #expect(address?["type"] == "webpush" && address?["unusable"] == nil, "\(explained)")
        let subscription = "https://localhost:\(world.service.port)/push/anna-again"
        try world.register("anna", ["hero"], at: subscription)
        try await world.until("pushed with the new key") { $0["sent"] == 2 }
        #expect(world.service.record.devices["anna-again"]?.taken == 1)
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
    /// Whether pushes to this machine are allowed.
    /// The secret of every browser.
    private static let auth = Base64.url.string([UInt8](repeating: 7, count: 16))

    var folder: String { configuration.folder }

    init(
        _ kind: SimulatedService, clock: HeldClock, options: [String] = [], isLocal: Bool = true
    ) throws {
        (self.kind, self.clock) = (kind, clock)
        configuration = try GatewayConfiguration()
        sender = try SigningKey(generating: .es256)
        browser = try SigningKey(generating: .es256)
        accountKey = try ServiceAccountKey()
        account = FCMSender(
            project: "project", email: "gateway@test", keyID: "1", key: accountKey.publicKey)
        try sender.save(to: configuration.folder + "/vapid.pem")
        try browser.save(to: configuration.folder + "/browser.pem")
        let terms = SimulatedAPNs.Terms(kind, senders: [account])
        let made = configuration.certificates
        var settings = APNsServer.Settings(
            certificate: .file(made.certificate), key: .file(made.key))
        settings.clock = { .init(now: clock.now, wall: clock.wall) }
        service = try APNsServer(terms, settings)
        let url = "https://localhost:\(service.port)"
        try Self.write(account.document(accountKey, url: url), in: configuration.folder)
        try Self.write(configuration, options, isLocal: isLocal, kind, port: service.port)
        gateway = try LocalGateway(configuration, clock: clock)
        game = try GameFixture(gateway)
    }

    private static func write(_ document: JSONValue, in folder: String) throws {
        try document.text.write(
            toFile: folder + "/account.json", atomically: true, encoding: .utf8)
    }

    private static func write(
        _ configuration: GatewayConfiguration, _ options: [String], isLocal: Bool,
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
                "push:", "  fcm: localhost:\(port)",
                "  serviceCA: \(configuration.certificates.ca)",
            ] + (isLocal ? ["  serviceRanges: [127.0.0.0/8]"] : [])
                + options.map { "  \($0)" })
    }

    /// Replaces the file of the service account: with the service's, or with one that has `key`.
    func writeAccount(_ key: ServiceAccountKey? = nil) throws {
        let url = "https://localhost:\(service.port)"
        try Self.write(account.document(key ?? accountKey, url: url), in: folder)
    }

    /// Rewrites the configuration, which allows local services, and has the gateway read it and its
    /// files.
    func reconfigure(_ options: [String]) throws {
        try Self.write(configuration, options, isLocal: true, kind, port: service.port)
        let answer = try gateway.reloadConfiguration()
        guard answer.status == 200 else { throw TestFailure(answer.text) }
    }

    func address(_ endpoint: String, key: String? = nil) -> JSONValue {
        let p256dh = JSONValue.string(key ?? browser.applicationServerKey)
        let keys: JSONValue = ["p256dh": p256dh, "auth": .string(Self.auth)]
        return ["type": "webpush", "endpoint": .string(endpoint), "keys": keys]
    }

    /// Returns a token that has not expired, however far the clock has advanced.
    func token() throws -> String {
        try gateway.token(app: GameFixture.app, scope: "changes:write clients:write operator")
    }

    /// Posts one change of each of `characters`; returns the last one's sequence.
    @discardableResult
    func change(_ characters: [String], run: String) throws -> UInt64 {
        let events = characters.map { event(source: run, id: $0, entity: "Character", key: $0) }
        let answer = try gateway.http().post(events, app: GameFixture.app, token: token())
        guard answer.status == 202, let sequence = answer["sequence"]?.integerValue else {
            throw TestFailure(answer.text)
        }
        return UInt64(sequence)
    }

    /// Registers a device that shows characters, by default with a token or subscription of its
    /// name.
    func register(_ client: String, _ characters: [String], at endpoint: String? = nil) throws {
        let endpoint = endpoint ?? "https://localhost:\(service.port)/push/\(client)"
        let pushed: JSONValue =
            kind == .fcm ? ["type": "fcm", "token": .string(client)] : address(endpoint)
        let answer = try gateway.http().register(
            client, app: GameFixture.app, token: token(),
            registration(
                showing: characters, platform: "web",
                delivery: [["type": "stream"], pushed]))
        guard [200, 201].contains(answer.status) else { throw TestFailure(answer.text) }
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
        _ what: String, step: Int64 = 10_000, _ holds: ([String: Int]) throws -> Bool
    ) async throws {
        var outcomes: [String: Int] = [:]
        try await eventually(what, details: { "\(outcomes); \(gateway.standardErrorTail)" }) {
            clock.advance(to: clock.now + step)
            outcomes = try self.outcomes()
            return try holds(outcomes)
        }
    }

    /// Lets time pass until nothing is left to push of a change, but what the budgets withhold if
    /// that is allowed. Returns the number of widgets by what became of it.
    func settled(_ change: UInt64, mayBeWithheld: Bool = false) async throws -> [String: Int] {
        let (http, allowed) = (gateway.http(), Set(mayBeWithheld ? ["budget"] : []))
        var standing: JSONObject = [:]
        try await eventually("settled", details: { "\(standing); \(gateway.standardErrorTail)" }) {
            let answer = try http.request(
                "GET", "/v1/apps/\(GameFixture.app)/changes/\(change)/explain", token: token())
            standing = answer["outcomes"]?.objectValue ?? [:]
            guard let withheld = standing["withheldFor"]?.arrayValue else { return false }
            let reasons = Set(withheld.compactMap { $0.objectValue?["reason"]?.stringValue })
            // What authenticates a push must not expire under way.
            if !reasons.contains("under-way") { clock.advance(to: clock.now + 240_000) }
            return reasons.isSubset(of: allowed)
        }
        return standing.members.reduce(into: [:]) { numbers, member in
            numbers[member.name] = member.value.integerValue.map { Int($0) }
        }
    }

    /// Returns what the last push that each device accepted names; `nil` if it tells it to poll.
    func lastNamed(_ devices: [String]) throws -> [Set<String>?] {
        let record = service.record
        let bodies = try devices.map { try #require(record.devices[$0]?.pushes.last).request.body }
        guard kind == .fcm else {
            let pushes = bodies.map { ["body": .string(Base64.standard.string($0))] as JSONValue }
            return try decrypted(pushes).map { try named(in: $0) }
        }
        return try bodies.map { body in
            let message = try JSONValue(parsing: body).objectValue?["message"]?.objectValue
            return try named(
                in: try #require(message?["data"]?.objectValue?["timeline"]?.stringValue))
        }
    }

    /// Returns what the response to a poll names; `nil` if there is none.
    func named(in text: String) throws -> Set<String>? {
        guard !text.isEmpty else { return nil }
        let answer = try JSONValue(parsing: Array(text.utf8)).objectValue
        let said = answer?["notifications"]?.arrayValue?.compactMap(\.stringValue) ?? []
        return Set(try said.flatMap { try names(in: claims(of: $0)) })
    }

    /// Returns what pushes say, judged by other libraries: by their bodies in Base64, and by their
    /// fields if there are any. Throws ``TestFailure`` if they object.
    func decrypted(_ pushes: [JSONValue], at origin: String = "") throws -> [String] {
        let (script, file) = (folder + "/judge.py", folder + "/pushes.json")
        try Self.judge.write(toFile: script, atomically: true, encoding: .utf8)
        try JSONValue.array(pushes).text.write(toFile: file, atomically: true, encoding: .utf8)
        let (exit, output) = try GatewayProcess.run(
            [
                "python3", script, folder + "/browser.pem", Self.auth,
                sender.applicationServerKey, origin, file,
            ], program: "/usr/bin/env")
        guard exit == .status(0) else { throw TestFailure("not as it must be: \(output)") }
        return output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .map(String.init)
    }

    private static let judge = """
        import base64, json, sys, time
        import http_ece
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from py_vapid import Vapid02

        key, auth, sender, origin, pushes = sys.argv[1:]
        def raw(text): return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        def judge(field):
            assert Vapid02.verify(field), "the token is not valid"
            parts = dict(part.split("=", 1) for part in field.removeprefix("vapid ").split(","))
            assert parts["k"] == sender, "the key is another one"
            claims = json.loads(raw(parts["t"].split(".")[1]))
            assert claims["aud"] == origin and claims["sub"] == "mailto:o@example.com", claims
            assert 0 < claims["exp"] - time.time() <= 86400, claims
        with open(key, "rb") as file: private = load_pem_private_key(file.read(), None)
        with open(pushes) as file: pushes = json.load(file)
        for push in pushes:
            if "fields" in push: judge(push["fields"]["authorization"])
            body = base64.b64decode(push["body"])
            print(body and http_ece.decrypt(
                body, private_key=private, auth_secret=raw(auth)).decode() or "")
        """

    func stop() async {
        gateway.terminate()
        await service.stop()
    }
}

extension DeviceRecord {
    fileprivate var isGivenUp: Bool { !isDead && last?.answer?.status == 400 }
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
