import GatewayTLS
import GatewayTestSupport
import WidgetModel

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
