import CurlMulti
import GatewayCore
import GatewayOperations
import GatewayTelemetry
import Logging
import Synchronization
import WidgetModel

/// Sends spans to a collector with OTLP/HTTP, over one connection.
final class Collector: Sendable {
    private let client: CurlClient
    private let fields: CurlFields
    private let endpoint: CollectorEndpoint
    private let deadline: Duration
    private let encoding: OTLPEncoding
    private let clock: GatewayClock
    private let logger: Logger
    /// Whether the last export failed: a lasting failure is logged once.
    private let isFailing = Mutex(false)

    /// Creates an exporter; opens no connection before the first spans.
    init(
        _ configuration: TracingConfiguration, instance: String, _ logger: Logger,
        clock: GatewayClock
    ) throws(Faults) {
        try configuration.checkFiles()
        fields = try configuration.fields()
        endpoint = configuration.endpoint
        deadline = .seconds(configuration.timeoutSeconds)
        let attributes =
            [
                ("service.name", configuration.service), ("service.version", productVersion),
                ("service.instance.id", instance),
            ] + configuration.attributes
        encoding = OTLPEncoding(
            resource: attributes.map { .init(name: $0.0, value: .text($0.1)) },
            scope: ("timeline-gateway", productVersion))
        self.clock = clock
        self.logger = logger
        var settings = CurlClient.Configuration(name: "traces")
        settings.trust = CurlTrust(file: configuration.trust)
        settings.allowsPlainText = configuration.endpoint.isPlain
        settings.connectTimeout = deadline
        settings.requestsMax = 1
        do throws(CurlError) {
            client = try CurlClient(settings)
        } catch {
            throw Faults("tracing.endpoint", error.message)
        }
    }

    func send(_ spans: [SpanRecord]) async -> ExportAnswer {
        let request = CurlRequest(
            "POST", origin: endpoint.origin, target: endpoint.target, fields: fields,
            body: encoding.body(spans), timeout: deadline)
        let (answer, reason): (ExportAnswer, String)
        do throws(CurlError) {
            let got = try await client.send(request)
            answer = ExportAnswer(
                status: got.status,
                retryAfter: got.head["retry-after"].flatMap {
                    RetryAfter.seconds($0, now: clock.wallSeconds())
                },
                body: got.body)
            reason = String(got.status)
        } catch {
            answer = error.code == .badRequest ? .refused : .retry(after: nil)
            reason = error.code.rawValue
        }
        note(answer, reason)
        return answer
    }

    private func note(_ answer: ExportAnswer, _ reason: String) {
        let fails: Bool
        if case .accepted = answer { fails = false } else { fails = true }
        let isNews = isFailing.withLock { isFailing in
            defer { isFailing = fails }
            return isFailing != fails
        }
        guard isNews else { return }
        if fails {
            logger.warning("the collector does not accept spans", metadata: ["reason": "\(reason)"])
        } else {
            logger.notice("the collector accepts spans again")
        }
    }

    /// Ends the requests in flight.
    func close() { client.close() }
}
