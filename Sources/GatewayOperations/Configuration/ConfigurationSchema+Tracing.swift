import GatewayEngine

extension ConfigurationSchema {
    /// The options for tracing and the collector.
    static let tracing = [
        option(
            "tracing.endpoint", kind: .text, default: "none, and nothing is traced",
            help: "Collector of traces, by OTLP/HTTP in JSON: the URL before `/v1/traces`, such as "
                + "`https://collector.example.com:4318`. `OTEL_EXPORTER_OTLP_ENDPOINT` in the "
                + "environment says the same."),
        option(
            "tracing.share", kind: .fraction, default: "1",
            help:
                "Of the traces that begin here, the share that is recorded. Who sends "
                + "`traceparent` decides with its sampled flag."),
        option(
            "tracing.headers", kind: .path, default: "none",
            help:
                "File with header fields for the collector, such as a key: `NAME: VALUE`, one a "
                + "line."),
        option(
            "tracing.ca", kind: .path, default: "the system's",
            help: "Certificates to trust at the collector, PEM."),
        option(
            "tracing.timeout", kind: .duration, default: "10s",
            help: "Longest wait for the collector's answer."),
        option(
            "tracing.serviceName", kind: .text, default: "timeline-gateway",
            help: "`service.name` of all spans. `OTEL_SERVICE_NAME` in the environment says the "
                + "same."),
        option(
            "tracing.attributes", kind: .texts, default: "none",
            help:
                "What else is said of this gateway, such as "
                + "`deployment.environment.name=production`."),
    ]
}
