extension ConfigurationSchema {
    /// The options for tracing and the collector.
    static let tracing = [
        option(
            "tracing.endpoint", kind: .text, default: "none (tracing off)",
            help: "Trace collector, OTLP/HTTP in JSON: the URL before `/v1/traces`, such as "
                + "`https://collector.example.com:4318`. Same as `OTEL_EXPORTER_OTLP_ENDPOINT` in "
                + "the environment, where `OTEL_SDK_DISABLED=true` turns tracing off."),
        option(
            "tracing.share", kind: .fraction, default: "1",
            help: "Fraction of the traces started here that are recorded. With an incoming "
                + "`traceparent`, its sampled flag decides."),
        option(
            "tracing.headers", kind: .path, default: "none",
            help:
                "File with header fields for the collector, such as a key: `NAME: VALUE`, one per "
                + "line."),
        option(
            "tracing.ca", kind: .path, default: "the system's",
            help: "Trusted certificates for the collector, PEM."),
        option(
            "tracing.timeout", kind: .duration, default: "10s",
            help: "Timeout for the collector's response."),
        option(
            "tracing.serviceName", kind: .text, default: "timeline-gateway",
            help: "`service.name` of all spans. Same as `OTEL_SERVICE_NAME` in the environment."),
        option(
            "tracing.attributes", kind: .texts, default: "none",
            help:
                "Additional resource attributes, such as `deployment.environment.name=production`. "
                + "Same as `OTEL_RESOURCE_ATTRIBUTES` in the environment."),
    ]
}
