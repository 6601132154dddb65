import Foundation
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// A gateway with a configuration file, whose metrics a test reads.
struct WatchedGateway {
    let folder: String
    let gateway: GatewayProcess
    /// Its admin port, on loopback.
    let port: UInt16
    let admin: TestHTTP

    private static let repository = #filePath.replacing(
        "/Tests/SystemTests/Process/ConfiguredGateways.swift", with: "")

    /// - Parameters:
    ///   - options: Lines of configuration in addition to the usual ones.
    ///   - days: The validity of its certificate, in days.
    init(_ options: [String] = [], days: Int = 60) throws {
        folder = try GatewayProcess.temporaryDirectory()
        let certificates = folder + "/certs"
        try FileManager.default.createDirectory(
            atPath: certificates, withIntermediateDirectories: true)
        try Self.makeCertificates(in: folder, days: days)
        try Self.write(options, in: folder)
        port = try GatewayProcess.freePort()
        gateway = try GatewayProcess(
            data: folder, configuration: folder + "/gateway.yaml", admin: "127.0.0.1:\(port)")
        admin = gateway.adminHTTP()
    }

    /// Makes a server certificate; the authority stays the same.
    static func makeCertificates(in folder: String, days: Int) throws {
        let (exit, output) = try GatewayProcess.run(
            ["\(Self.repository)/Certs/make-development", folder + "/certs", "--days", "\(days)"],
            program: "/usr/bin/env")
        guard exit == .status(0) else { throw TestFailure(output) }
    }

    /// Writes or rewrites the configuration.
    static func write(_ options: [String], in folder: String) throws {
        let lines = [
            "publicURL: https://gateway.test", "localIssuer: true",
            "tls: { certificate: \(folder)/certs/server.pem, key: \(folder)/certs/server.key }",
        ]
        try (lines + options).joined(separator: "\n")
            .write(toFile: folder + "/gateway.yaml", atomically: true, encoding: .utf8)
    }
}

/// A gateway with the options of a test, and two apps.
struct LimitedGateway {
    static let other = "com.other"
    let gateway: any TestGateway
    let game: GameFixture
    let otherBackend: String

    /// - Parameters:
    ///   - options: Lines of its configuration.
    ///   - asProcess: Whether it is a process of its own.
    init(_ options: String, asProcess: Bool = false) throws {
        gateway = try GatewayConfiguration(["publicURL: https://gateway.test", options])
            .start(asProcess: asProcess)
        game = try GameFixture(gateway)
        otherBackend = try gateway.token(
            app: Self.other, scope: "catalog:write changes:write clients:write")
        let put = try gateway.http().request(
            "PUT", "/v1/apps/\(Self.other)/catalog", token: otherBackend,
            body: "{\"app\": \"\(Self.other)\", \"widgets\": []}")
        try #require(put.status == 201, "\(put.text)")
    }

    /// Registers a client; returns the status, after checking the text of a refusal.
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

    /// Posts a change; returns the status, after checking the text of a refusal.
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

    func gauge(_ name: String, app: String = GameFixture.app) throws -> Int? {
        try gateway.metrics()["timeline_gateway_\(name){app=\"\(app)\"}"].map { Int($0) }
    }
}

/// A gateway that sends traces to a collector, and its directory.
struct TracedFixture {
    static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    static let parent = "00f067aa0ba902b7"
    /// A trace context whose sender records the trace.
    static let traceparent = "00-\(trace)-\(parent)-01"

    let data: String
    let certificates: DevelopmentCertificates
    private let configuration: GatewayConfiguration

    init() throws {
        configuration = try GatewayConfiguration()
        (data, certificates) = (configuration.folder, configuration.certificates)
    }

    /// Starts the gateway.
    ///
    /// - Parameter lines: Lines of configuration in addition to the usual ones.
    func gateway(_ lines: [String]) throws -> LocalGateway {
        try configuration.write(["publicURL: https://gateway.test"] + lines)
        return try LocalGateway(configuration)
    }

    /// Returns an event that affects the hero, with attributes of its own.
    static func hero(_ id: String, _ more: [(String, String)] = []) -> JSONValue {
        let plain = event(source: "test", id: id, entity: "Character", key: "hero")
        guard var object = plain.objectValue else { return plain }
        for (name, value) in more { object[name] = .string(value) }
        return .object(object)
    }

    @discardableResult
    static func post(
        _ game: GameFixture, _ event: JSONValue, _ headers: [(String, String)] = []
    ) throws -> TestHTTPAnswer {
        let answer = try game.gateway.http().request(
            "POST", "/v1/apps/\(GameFixture.app)/changes", token: game.backend,
            headers: [("Content-Type", "application/cloudevents+json")] + headers,
            body: event.text)
        guard answer.status == 202 else { throw TestFailure(answer.text) }
        return answer
    }

    /// Returns the number of spans with an outcome, according to the metrics page.
    static func spans(_ gateway: LocalGateway, _ outcome: String) throws -> Int {
        let page = try gateway.metrics()
        return Int(page["timeline_gateway_trace_spans_total{outcome=\"\(outcome)\"}"] ?? 0)
    }
}
