/// The environment variables that OpenTelemetry defines: those that the gateway heeds, and notices
/// about the others that are set.
struct OpenTelemetryVariables {
    /// The variables with the same meaning as an option, by the option.
    static let options = [
        "tracing.endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT",
        "tracing.serviceName": "OTEL_SERVICE_NAME",
        "tracing.attributes": "OTEL_RESOURCE_ATTRIBUTES",
    ]

    private static let prefix = "OTEL_"
    private static let disabling = "OTEL_SDK_DISABLED"
    /// The options to use in place of variables, by the part of their name.
    private static let substitutes = [
        ("_ENDPOINT", "tracing.endpoint"), ("_HEADERS", "tracing.headers"),
        ("_CERTIFICATE", "tracing.ca"), ("_TIMEOUT", "tracing.timeout"),
        ("_TRACES_SAMPLER", "tracing.share"),
    ]

    /// Whether nothing may be traced, whatever else is configured.
    let isDisabled: Bool
    /// One line for each variable that is set and has no effect; never its value.
    let notices: [String]

    init(_ environment: [String: String]) {
        isDisabled = environment[Self.disabling]?.lowercased() == "true"
        let heeded = Set(Self.options.values).union([Self.disabling])
        notices = environment.keys.sorted().filter {
            $0.hasPrefix(Self.prefix) && !heeded.contains($0)
        }.map { name in
            let option = Self.substitutes.first { name.contains($0.0) }?.1
            return "\(name) has no effect"
                + (option.map { "; use the option `\($0)`" } ?? "")
        }
    }
}
