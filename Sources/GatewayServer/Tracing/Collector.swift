import GatewayCore
import GatewayDelivery
import Logging
import OpenTelemetry
import Synchronization
import WidgetModel

/// Hands spans to a collector by OTLP/HTTP, over one connection.
final class Collector: Sendable {
    private let engine: DeliveryEngine
    private let fields: DeliveryFields
    private let endpoint: CollectorEndpoint
    private let deadline: Duration
    private let encoding: OTLPEncoding
    private let wallSeconds: @Sendable () -> Int64
    private let logger: Logger
    /// Whether it did not take spans the last time: what lasts is logged once.
    private let isFailing = Mutex(false)

    /// Opens no connection before the first spans.
    ///
    /// - Throws: ``Faults``.
    init(
        _ configuration: TracingConfiguration, instance: String, _ logger: Logger,
        wallSeconds: @escaping @Sendable () -> Int64
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
        self.wallSeconds = wallSeconds
        self.logger = logger
        var settings = DeliveryEngine.Configuration(name: "traces")
        settings.trust = configuration.trust.map { .file($0) } ?? .system
        settings.allowsPlainText = configuration.endpoint.isPlain
        settings.connectDeadline = deadline
        settings.requestsMax = 1
        settings.answerFields = ["retry-after"]
        do throws(DeliveryError) {
            engine = try DeliveryEngine(settings)
        } catch {
            throw Faults("tracing.endpoint", error.message)
        }
    }

    /// Sends spans and says what came of it.
    func send(_ spans: [SpanRecord]) async -> ExportAnswer {
        let request = DeliveryRequest(
            origin: endpoint.origin, target: endpoint.target, fields: fields,
            body: encoding.body(spans), deadline: deadline)
        let (answer, reason): (ExportAnswer, String)
        do throws(DeliveryError) {
            let got = try await engine.send(request)
            answer = ExportAnswer(
                status: got.status,
                retryAfter: got.field(0).flatMap { RetryAfter.seconds($0, now: wallSeconds()) },
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
            logger.warning("the collector takes no spans", metadata: ["reason": "\(reason)"])
        } else {
            logger.notice("the collector takes spans again")
        }
    }

    /// Ends what is under way.
    func close() { engine.close() }
}
