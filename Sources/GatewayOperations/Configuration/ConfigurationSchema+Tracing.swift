extension ConfigurationSchema {
    static let tracing: [ConfigurationOption] = [
        .option(
            "tracing.endpoint", .text, default: "none (tracing off)",
            "Trace collector, OTLP/HTTP in JSON: the URL before `/v1/traces`, such as "
                + "`https://collector.example.com:4318`. Same as `OTEL_EXPORTER_OTLP_ENDPOINT` in "
                + "the environment, where `OTEL_SDK_DISABLED=true` turns tracing off."),
        .option(
            "tracing.share", .fraction, default: "1",
            "Fraction of the traces started here that are recorded. With an incoming "
                + "`traceparent`, its sampled flag decides."),
        .option(
            "tracing.headers", .path, default: "none",
            "File with header fields for the collector, such as a key: `NAME: VALUE`, one per "
                + "line."),
        .option(
            "tracing.ca", .path, default: "the system's",
            "Trusted certificates for the collector, PEM."),
        .option(
            "tracing.timeout", .duration, default: "10s", "Timeout for the collector's response."),
        .option(
            "tracing.serviceName", .text, default: "timeline-gateway",
            "`service.name` of all spans. Same as `OTEL_SERVICE_NAME` in the environment."),
        .option(
            "tracing.attributes", .texts, default: "none",
            "Additional resource attributes, such as `deployment.environment.name=production`. "
                + "Same as `OTEL_RESOURCE_ATTRIBUTES` in the environment."),
    ]
}
