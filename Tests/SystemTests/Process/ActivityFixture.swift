import APNsSimulator
import Foundation
import GatewayTLS
import GatewayTestSupport
import Synchronization
import WidgetModel

/// A Live Activity, a push-to-start token or a broadcast channel.
struct ActivityDevice: Sendable, Hashable {
    enum Sort { case activity, start, channel }

    let app: String
    let client: String
    /// The type; the content of a `Match` is the same for everybody.
    let type: String
    let hero: String
    let sort: Sort
    /// The push token, or the id of the channel.
    let address: String
    var id: String { sort == .channel ? "production" : hero }

    init(
        _ app: String, _ client: String, hero: String, type: String = "Battle",
        sort: Sort = .activity, address: String? = nil
    ) {
        (self.app, self.client, self.type, self.hero, self.sort) = (app, client, type, hero, sort)
        let name = "\(app) \(client) \(hero)"
        self.address = address ?? name.utf8.map { String(format: "%02x", $0) }.joined()
    }
}

extension ActivityPush {
    /// The number that the source answered.
    var number: Int64 { contentState?["number"]?.integerValue ?? -1 }
    /// Whom the source answered.
    var reader: String? { contentState?["for"]?.stringValue }
    var startID: String? { aps["attributes"]?.objectValue?["start"]?.stringValue }
}

/// A gateway with apps that have Live Activities, their sources of content, and an APNs that fails.
final class ActivityFixture: Sendable {
    /// The first app has a key of its own, and so connections; the others share one.
    private static let keys = ["KEY1234567", "KEY7654321"]
    /// A double of APNs that shares no code with the simulated one.
    private static let double = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "apns_double.py").path

    let gateway: any TestGateway
    let apns: APNsServer
    let sources: ContentServer
    let clock: HeldClock?
    /// The double, and the file of its findings.
    let double: (program: TestProgram, report: String)?
    private let begin: Int64
    private let connection: Mutex<TestHTTP>
    /// The ids of the starts, by app.
    private let starts = Mutex<[String: Set<String>]>([:])

    /// - Parameters:
    ///   - apps: The apps, each with the path of its source, which is empty for one that is down.
    ///   - options: Lines of the push configuration in addition to the usual ones.
    ///   - clock: The gateway's clock; without one it is a process of its own.
    ///   - usesDouble: Whether the first app's pushes go to the double, 5 % of whose answers are
    ///     faults.
    init(
        _ apps: [(String, String)], options: [String] = [], clock: HeldClock? = nil,
        usesDouble: Bool = false
    ) throws {
        let configuration = try GatewayConfiguration()
        let (folder, made) = (configuration.folder, configuration.certificates)
        apns = try configuration.startAPNs(keys: Self.keys)
        var port = apns.port
        if usesDouble {
            let report = folder + "/report"
            let program = try TestProgram(
                "/usr/bin/env",
                [
                    "python3", Self.double, "--certificate", made.certificate, "--key", made.key,
                    "--team", GatewayConfiguration.team, "--key-id", Self.keys[0], "--p8",
                    "\(folder)/\(Self.keys[0]).p8", "--bundle", apps[0].0, "--report", report,
                    "--fault", "5",
                ])
            let url = program.waitForLine(prefix: "ready ")
            guard let found = url?.split(separator: ":").last.flatMap({ Int($0) }) else {
                throw TestFailure("no double of APNs: \(program.standardErrorTail)")
            }
            port = found
            double = (program: program, report: report)
        } else {
            double = nil
        }
        let sections = apps.enumerated().map { place, app in
            configuration.apnsSection(of: app.0, key: Self.keys[min(place, 1)])
        }
        try configuration.writePush(
            sections, port: port, options: options,
            also: ["webhooks: { allowedRanges: [127.0.0.0/8], ca: \(made.ca) }"])
        self.clock = clock
        begin = clock?.now ?? 0
        sources = try ContentServer(in: folder, certificate: made.certificate, key: made.key)
        let gateway = try configuration.start(asProcess: clock == nil, clock: clock)
        self.gateway = gateway
        connection = Mutex(gateway.http())
        for (app, path) in apps {
            let port = path.isEmpty ? Int64(try GatewayProcess.freePort()) : sources.port
            try putCatalog(of: app, url: "https://localhost:\(port)\(path.isEmpty ? "/" : path)")
        }
    }

    private var http: TestHTTP { connection.withLock { $0 } }

    private func token(_ app: String) throws -> String {
        try gateway.token(app: app, scope: "catalog:write changes:write clients:write operator")
    }

    private func putCatalog(of app: String, url: String) throws {
        let types = [("Battle", "false"), ("Match", "true")].map { type, isShared in
            """
              - type: \(type)
                attributes: [hero]
                content: { url: "\(url)", shared: \(isShared) }
                dependsOn: [{ entity: Character, match: { id: $hero } }]
            """
        }
        let body = """
            app: \(app)
            entities: { Character: { properties: [health] } }
            widgets: []
            activities:
            \(types.joined(separator: "\n"))
            """
        try http.putCatalog(body, app: app, token: token(app))
    }

    // MARK: What happens

    /// Registers clients with their activities, push-to-start tokens and channels.
    func register(_ devices: [ActivityDevice], osVersion: String = "26.0") throws {
        func entry(_ device: ActivityDevice) -> JSONValue {
            var delivery: JSONObject = [
                "type": "apns", "pushType": "liveactivity", "environment": "production",
            ]
            delivery[device.sort == .channel ? "channel" : "token"] = .string(device.address)
            var object: JSONObject = [
                "type": .string(device.type), "delivery": .object(delivery),
            ]
            if device.sort == .start { return .object(object) }
            object["id"] = .string(device.id)
            object["attributes"] = ["hero": .string(device.hero)]
            return .object(object)
        }
        for own in Dictionary(grouping: devices, by: { [$0.app, $0.client] }).values {
            let (app, client) = (own[0].app, own[0].client)
            let document: JSONValue = [
                "platform": own[0].sort == .channel ? "broadcast" : "iOS",
                "osVersion": .string(osVersion), "attributes": ["account": "7"],
                "activities": .array(own.filter { $0.sort != .start }.map(entry)),
                "activityStarts": .array(own.filter { $0.sort == .start }.map(entry)),
            ]
            let answer = try http.register(client, app: app, token: token(app), document)
            guard [200, 201].contains(answer.status) else { throw TestFailure(answer.text) }
        }
    }

    /// Posts a change of heroes, whose numbers rise before; returns once it is on disk.
    ///
    /// - Parameter ending: The hero whose activities end with it.
    func change(
        _ heroes: [String], of app: String, urgency: Urgency = .normal, ending: String? = nil
    ) throws {
        let events = try heroes.map { hero -> JSONValue in
            let number = try sources.raise(hero, ends: hero == ending)
            return [
                "specversion": "1.0", "type": "test.changed", "source": "storm",
                "id": .string("\(hero)-\(number)"),
                "data": Change(entity: "Character", id: hero, urgency: urgency).json,
            ]
        }
        let answer = try http.post(events, app: app, token: token(app))
        guard answer.status == 202 else { throw TestFailure(answer.text) }
    }

    /// Starts activities on every client with a push-to-start token.
    func start(_ id: String, of app: String, hero: String) throws {
        try post(id, of: app, hero: hero, ["attribute": "account:7", "alert": ["title": "Battle"]])
        starts.withLock { _ = $0[app, default: []].insert(id) }
    }

    func openChannel(_ client: String, of app: String, hero: String) throws -> ActivityDevice {
        let answer = try post(client, of: app, hero: hero, ["channel": .string(client)])
        guard let id = answer["channels"]?.objectValue?["production"]?.stringValue else {
            throw TestFailure(answer.text)
        }
        return ActivityDevice(app, client, hero: hero, sort: .channel, address: id)
    }

    @discardableResult
    private func post(
        _ id: String, of app: String, hero: String, _ more: JSONValue
    ) throws -> TestHTTPAnswer {
        let start: JSONValue = [
            "id": .string(id), "type": "Battle", "urgency": "high", "ttl": 43_200,
            "attributes": ["hero": .string(hero), "start": .string(id)],
        ]
        let answer = try http.request(
            "POST", "/v1/apps/\(app)/activities", token: token(app),
            body: start.merging(patch: more).text)
        guard answer.status == 202 else { throw TestFailure(answer.text) }
        return answer
    }

    /// Kills the gateway with SIGKILL, and starts it again.
    func restart() throws {
        try gateway.process.restart()
        connection.withLock { $0 = gateway.http() }
    }

    /// Stops the gateway and the simulated APNs.
    func stop() async throws {
        let hasStopped = Mutex(false)
        onThread { [gateway] in
            gateway.terminate()
            hasStopped.withLock { $0 = true }
        }
        try await eventually("stopped") {
            if let clock { clock.advance(to: clock.now + 1_000) }
            return hasStopped.withLock { $0 }
        }
        await apns.stop()
    }

    // MARK: What came of it

    /// Returns whether the last content that APNs accepted for a device covers the last change of
    /// its hero; of a push-to-start token, whether it accepted each start.
    func isShown(_ device: ActivityDevice, _ record: PushRecord) -> Bool {
        let known = record.devices[device.address]
        if device.sort == .start {
            let wanted = starts.withLock { $0[device.app] ?? [] }
            return wanted.isSubset(of: (known?.activities ?? []).compactMap(\.startID))
        }
        let last = known?.pushes.last.flatMap { ActivityPush($0.request) }
        return last?.number ?? -1 >= sources.number(of: device.hero)
    }

    /// Returns what the gateway says of a client.
    func explained(_ device: ActivityDevice) throws -> JSONObject {
        try http.explained(device.client, app: device.app, token: token(device.app))
    }

    /// Returns what the gateway says of an activity, and why nothing more is pushed to it; `nil`
    /// while something will be.
    private func explainedItem(
        _ device: ActivityDevice, _ document: JSONObject
    ) -> (item: JSONObject, reason: String?) {
        let item = (document["activities"]?.arrayValue ?? []).compactMap(\.objectValue)
            .first { $0["id"]?.stringValue == device.id }
        guard let item else { return ([:], nil) }
        if item["delivery"] == nil {
            let removed = document["removedAddresses"]?.arrayValue?.first?.objectValue
            return (item, removed?["reason"]?.stringValue)
        }
        let reason = item["reason"]?.stringValue
        return (item, ["refused", "dead-address", "ended"].contains(reason) ? reason : nil)
    }

    /// Lets time pass until each device shows what it should, or the gateway says why it cannot;
    /// returns those reasons.
    ///
    /// APNs' record tells what a device shows, or the explanation if the pushes go to the double.
    func settle(_ devices: [ActivityDevice]) async throws -> [ActivityDevice: String] {
        var reasons: [ActivityDevice: String] = [:]
        var left = devices
        var looks = 0
        try await eventually(
            "settled",
            details: { "\(left.map { try? explained($0) }); \(gateway.standardErrorTail)" }
        ) {
            let record = apns.record
            if double == nil { left.removeAll { isShown($0, record) } }
            looks += 1
            guard !left.isEmpty, looks.isMultiple(of: 10) else { return left.isEmpty }
            var isUnderWay = false
            for device in left {
                let document = try explained(device)
                let (item, reason) = explainedItem(device, document)
                isUnderWay =
                    isUnderWay
                    || document["addresses"]?.arrayValue?.contains {
                        $0.objectValue?["underWay"] == true
                    } ?? false
                reasons[device] = reason
                if reason != nil || double != nil && item["fresh"] == true {
                    left.removeAll { $0 == device }
                }
            }
            // Some faults last a while of the machine's time, in which no start must expire.
            if let clock, !isUnderWay { clock.advance(to: clock.now + 900_000) }
            return left.isEmpty
        }
        return reasons
    }

    /// Returns the devices for which APNs accepted content older than that before it.
    func disorder(of devices: [ActivityDevice], _ record: PushRecord) -> [ActivityDevice] {
        devices.filter { device in
            let numbers = (record.devices[device.address]?.activities ?? []).map(\.number)
            return zip(numbers, numbers.dropFirst()).contains { $0 > $1 }
        }
    }

    /// Returns how many questions a source was asked.
    func questions(to path: String) -> Int {
        sources.questions.count { $0["path"]?.stringValue == path }
    }

    /// Returns the clients with an accepted push whose attempt the gateway has stored.
    func pushedClients(of app: String) throws -> Set<String> {
        let answer = try http.request(
            "GET", "/v1/apps/\(app)/attempts?outcome=sent&limit=1000", token: token(app))
        guard let attempts = answer["attempts"]?.arrayValue else { throw TestFailure(answer.text) }
        return Set(attempts.compactMap { $0.objectValue?["client"]?.stringValue })
    }

    /// Returns the hour at which the gateway began a push, by the timestamp of its content.
    func hour(of content: ActivityPush) -> Int64 {
        let first = (clock?.wall(at: begin) ?? 0) / 1_000
        return ((content.timestamp ?? 0) - first) / 3_600
    }

    /// Returns the highest number of pushes of a priority in 24 hours that APNs accepted for a
    /// client's devices.
    func mostInADay(_ devices: [ActivityDevice], priority: String, _ record: PushRecord) -> Int {
        let hours = devices.flatMap { record.devices[$0.address]?.pushes ?? [] }
            .filter { $0.request.priority == priority }
            .compactMap { ActivityPush($0.request).map { hour(of: $0) } }
        return hours.map { first in hours.count { (first..<first + 24).contains($0) } }.max() ?? 0
    }
}
