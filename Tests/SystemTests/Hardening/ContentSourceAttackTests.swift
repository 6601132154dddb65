import APNsSimulator
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Backends that answer a question for content as none should.
@Suite("Content source attacks")
struct ContentSourceAttackTests {
    private static let (hostile, bystander) = ("com.hostile", "com.bystander")
    /// The only address of this machine that may be asked.
    private static let host = "127.0.0.2"

    private let process: GatewayProcess
    private let apns: APNsServer
    private let source: ContentServer

    init() throws {
        let configuration = try GatewayConfiguration()
        let folder = configuration.folder
        let authority = try TestCertificate("sources", in: folder)
        let certificate = try TestCertificate(
            "source", in: folder, issuer: authority, alternativeNames: "IP:\(Self.host)")
        source = try ContentServer(
            in: folder, certificate: certificate.certificate, key: certificate.key,
            host: Self.host)
        apns = try configuration.startAPNs()
        let webhooks = "allowedRanges: [\(Self.host)/32], ca: \(authority.certificate)"
        try configuration.writePush(
            [Self.hostile, Self.bystander].map { configuration.apnsSection(of: $0) },
            port: apns.port, also: ["webhooks: { \(webhooks) }"])
        process = try GatewayProcess(
            data: folder, configuration: configuration.file,
            environment: ["TIMELINE_GATEWAY_LOG_LEVEL": "trace"])
    }

    private func ask(
        _ method: String, _ app: String, _ path: String, type: String = "application/json",
        _ body: JSONValue? = nil
    ) async throws -> TestHTTPAnswer {
        let token = try process.token(
            app: app, scope: "catalog:write changes:write clients:write operator")
        return try await process.http().send(
            method, "/v1/apps/\(app)/\(path)", token: token, headers: [("Content-Type", type)],
            body: body?.text)
    }

    /// Puts a catalog with these types of Live Activities, each with the URL of its content.
    private func putCatalog(_ app: String, _ types: [(name: String, url: String)]) async throws {
        let activities = types.map { type -> JSONValue in
            [
                "type": .string(type.name), "attributes": ["hero"],
                "dependsOn": [["entity": "Hero", "match": ["id": "$hero"]]],
                "content": ["url": .string(type.url)],
            ]
        }
        let answer = try await ask(
            "PUT", app, "catalog",
            [
                "app": .string(app), "entities": ["Hero": [:]], "widgets": [],
                "activities": .array(activities),
            ])
        #expect(answer.status == 201, "\(answer.text)")
    }

    private static func token(_ number: Int) -> String {
        "01234567" + String(repeating: Target.pushToken, count: 6) + String(10_000_000 + number)
    }

    /// Registers a client with Live Activities of a type, which have tokens from a number on.
    private func register(
        _ client: String, of app: String, type: String, activities: Range<Int>
    ) async throws {
        let shown = activities.map { number -> JSONValue in
            let address: JSONValue = [
                "type": "apns", "pushType": "liveactivity", "token": .string(Self.token(number)),
            ]
            return [
                "type": .string(type), "id": .string("\(number)"), "attributes": ["hero": "panda"],
                "delivery": address,
            ]
        }
        let answer = try await ask(
            "PUT", app, "clients/\(client)", ["platform": "iOS", "activities": .array(shown)])
        #expect(answer.status == 201, "\(answer.text)")
    }

    private func change(_ app: String) async throws {
        let answer = try await ask(
            "POST", app, "changes", type: "application/cloudevents+json",
            event(source: "test", id: "1", entity: "Hero", key: "panda"))
        #expect(answer.status == 202, "\(answer.text)")
    }

    private var paths: [String] { source.questions.compactMap { $0["path"]?.stringValue } }

    @Test("A source without end, a slow one, a redirect and a private address cost only their app")
    func hostileSources() async throws {
        let origin = "https://\(Self.host):\(source.port)"
        let attacks = [
            ("Slow", origin + "/drip", "timed-out"), ("Endless", origin + "/endless", "too-large"),
            ("Moved", origin + "/moved", "status"),
            ("Private", "https://localhost:\(source.port)/good", "address-not-allowed"),
        ]
        try await putCatalog(Self.hostile, attacks.map { (name: $0.0, url: $0.1) })
        try await putCatalog(Self.bystander, [(name: "Good", url: origin + "/good")])
        for (place, attack) in attacks.enumerated() {
            let numbers = (place + 1) * 100..<(place + 1) * 100 + 16
            try await register(
                attack.0, of: Self.hostile, type: attack.0, activities: numbers)
        }
        try await register("bystander", of: Self.bystander, type: "Good", activities: 0..<1)
        try await change(Self.hostile)
        try await eventually("asked") { paths.contains("/drip") }
        try await change(Self.bystander)
        let own = Self.token(0)
        try await eventually("pushed", details: { process.standardErrorTail }) {
            apns.record.devices[own]?.taken == 1
        }
        for (type, _, failure) in attacks {
            let problem = "The source of content of \(type) fails: \(failure)."
            var answer = ""
            try await eventually("explained: \(problem)", details: { answer }) {
                answer = try await ask("GET", Self.hostile, "clients/\(type)/explain").text
                return answer.contains(problem)
            }
        }
        let record = apns.record
        #expect(Set(record.devices.keys) == [own], "nobody else is pushed to")
        #expect(record.violations.isEmpty)
        for question in source.questions where question["path"] == "/good" {
            #expect(question["asked"]?.objectValue?["app"] == .string(Self.bystander))
        }
        expectNothingLeaked(
            (try? String(contentsOfFile: "/proc/\(process.pid)/fd/2", encoding: .utf8)) ?? "")
        await apns.stop()
    }
}
