import GatewayTelemetry

extension TracingConfiguration {
    /// Reads the configuration of tracing from the layers; `nil` if they name no collector.
    init?(_ layers: inout ConfigurationLayers) {
        let text = layers.text("tracing.endpoint")
        let endpoint = text.flatMap(CollectorEndpoint.init)
        if text != nil, endpoint == nil {
            layers.fault(
                "tracing.endpoint",
                "must be a URL such as https://collector.example.com:4318, without a query")
        }
        // All options are read before an early return, so that all faults are reported.
        let share = layers.fraction("tracing.share")
        let timeout = layers.seconds("tracing.timeout")
        var attributes: [(name: String, value: String)] = []
        for text in layers.texts("tracing.attributes") ?? [] {
            let parts = text.split(separator: "=", maxSplits: 1)
            if parts.count == 2, attributes.count < SpanRecord.attributesMax {
                attributes.append((String(parts[0]), String(parts[1])))
            } else {
                layers.fault(
                    "tracing.attributes",
                    "must be up to \(SpanRecord.attributesMax) of NAME=VALUE, and is `\(text)`")
            }
        }
        guard let endpoint, !layers.openTelemetry.isDisabled else { return nil }
        self.init(endpoint: endpoint)
        self.share = share ?? self.share
        fieldsFile = layers.text("tracing.headers")
        trust = layers.text("tracing.ca")
        timeoutSeconds = timeout ?? timeoutSeconds
        service = layers.text("tracing.serviceName") ?? service
        self.attributes = attributes
        if fieldsFile != nil, endpoint.isPlain, !endpoint.isLoopback {
            layers.fault(
                "tracing.headers",
                "would be sent unencrypted; tracing.endpoint must be https")
        }
    }
}
