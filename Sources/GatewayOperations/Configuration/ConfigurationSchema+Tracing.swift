import GatewayEngine

extension ConfigurationSchema {
    /// The options for tracing and the collector.
    static let tracing = [
        option(
            "tracing.endpoint", .text, "none, and nothing is traced",
            "Collector of traces, by OTLP/HTTP in JSON: the URL before `/v1/traces`, such as "
                + "`https://collector.example.com:4318`. `OTEL_EXPORTER_OTLP_ENDPOINT` in the "
                + "environment says the same."),
        option(
            "tracing.share", .fraction, "1",
            "Of the traces that begin here, the share that is recorded. Who sends `traceparent` "
                + "decides with its sampled flag."),
        option(
            "tracing.headers", .path, "none",
            "File with header fields for the collector, such as a key: `NAME: VALUE`, one a line."),
        option(
            "tracing.ca", .path, "the system's", "Certificates to trust at the collector, PEM."),
        option("tracing.timeout", .duration, "10s", "Longest wait for the collector's answer."),
        option(
            "tracing.serviceName", .text, "timeline-gateway",
            "`service.name` of all spans. `OTEL_SERVICE_NAME` in the environment says the same."),
        option(
            "tracing.attributes", .texts, "none",
            "What else is said of this gateway, such as `deployment.environment.name=production`."),
    ]
}
