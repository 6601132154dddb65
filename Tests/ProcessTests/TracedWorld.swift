import Foundation
import GatewayTLS
import GatewayTestSupport
import WidgetModel

/// A place for a gateway that sends traces to a collector, and what it is sent.
struct TracedWorld {
    static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    static let parent = "00f067aa0ba902b7"
    /// Of a sender who records it.
    static let traceparent = "00-\(trace)-\(parent)-01"

    let data: String
    let certificates: (ca: String, certificate: String, key: String)

    init() throws {
        data = try GatewayProcess.temporaryDirectory()
        let made = try DevelopmentCertificates.ensure(
            in: data, now: Int64(Date().timeIntervalSince1970))
        certificates = (made.ca, made.certificate, made.key)
    }

    /// The gateway, and its admin port.
    ///
    /// - Parameter lines: Of configuration, beside the usual ones.
    func gateway(_ lines: [String]) throws -> (GatewayProcess, TestHTTP) {
        let port = try GatewayProcess.freePort()
        let configuration = data + "/gateway.yaml"
        let usual = [
            "tls: { certificate: \(certificates.certificate), key: \(certificates.key) }",
            "localIssuer: true", "publicURL: https://gateway.test",
        ]
        try (usual + lines).joined(separator: "\n")
            .write(toFile: configuration, atomically: true, encoding: .utf8)
        return (
            try GatewayProcess(
                data: data, configuration: configuration, admin: "127.0.0.1:\(port)"),
            TestHTTP(url: "http://127.0.0.1:\(port)", ca: certificates.ca)
        )
    }

    /// An event that concerns the hero, with attributes of its own.
    static func hero(_ id: String, _ more: [(String, String)] = []) -> JSONValue {
        let plain = event(source: "test", id: id, entity: "Character", key: "hero")
        guard var object = plain.objectValue else { return plain }
        for (name, value) in more { object[name] = .string(value) }
        return .object(object)
    }

    /// Posts an event.
    @discardableResult
    static func post(
        _ game: GameFixture, _ event: JSONValue, _ headers: [(String, String)] = []
    ) throws -> TestHTTPAnswer {
        let answer = try game.gateway.http().request(
            "POST", "/v1/apps/\(GameFixture.app)/changes", token: game.backend,
            headers: [("Content-Type", "application/cloudevents+json")] + headers,
            body: event.text)
        guard answer.status == 202 else { throw WireFault(what: answer.text) }
        return answer
    }

    /// How many spans the admin page says something became of.
    static func spans(_ admin: TestHTTP, _ outcome: String) throws -> Int {
        let name = "timeline_gateway_trace_spans_total{outcome=\"\(outcome)\"} "
        let line = try admin.request("GET", "/metrics").text.split(separator: "\n").first {
            $0.hasPrefix(name)
        }
        return line?.split(separator: " ").last.flatMap { Double($0) }.map { Int($0) } ?? 0
    }

    /// Waits until something holds, for a minute at most.
    static func until(_ what: String, _ holds: () throws -> Bool) throws {
        for _ in 0..<1_200 {
            if try holds() { return }
            usleep(50_000)
        }
        throw WireFault(what: "not \(what)")
    }
}
