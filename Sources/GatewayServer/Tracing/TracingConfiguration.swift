import Foundation
import GatewayDelivery
import GatewayTLS
import OpenTelemetry
import WidgetModel

/// What is traced, and where spans go.
package struct TracingConfiguration: Sendable {
    /// The collector.
    package var endpoint: CollectorEndpoint
    /// Of the traces that begin here, the share that is recorded.
    package var share = 1.0
    /// A file with header fields for the collector, which may be secrets.
    package var fieldsFile: String?
    /// Certificates in PEM to trust at the collector, instead of the system's.
    package var trust: String?
    /// Longest wait for the collector's answer, in seconds.
    package var timeoutSeconds: Int64 = 10
    /// `service.name`.
    package var service = "timeline-gateway"
    /// What else is said of this gateway, by name.
    package var attributes: [(name: String, value: String)] = []

    /// Spans of every trace, for a collector.
    package init(endpoint: CollectorEndpoint) {
        self.endpoint = endpoint
    }

    /// Reads what the layers say; `nil` where they name no collector.
    init?(_ layers: inout ConfigurationLayers) {
        let text = layers.text("tracing.endpoint")
        let endpoint = text.flatMap(CollectorEndpoint.init)
        if text != nil, endpoint == nil {
            layers.fault(
                "tracing.endpoint",
                "must be a URL such as https://collector.example.com:4318, without query")
        }
        // All of them are looked at before anything is given up.
        share = layers.fraction("tracing.share") ?? 1
        fieldsFile = layers.text("tracing.headers")
        trust = layers.text("tracing.ca")
        timeoutSeconds = layers.seconds("tracing.timeout") ?? timeoutSeconds
        service = layers.text("tracing.serviceName") ?? service
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
        guard let endpoint else { return nil }
        self.endpoint = endpoint
        if fieldsFile != nil, endpoint.isPlain, !endpoint.isLoopback {
            layers.fault(
                "tracing.headers",
                "would be sent where everybody can read it; tracing.endpoint has to be https")
        }
    }

    /// The longest file of header fields, in bytes.
    private static let fieldsBytesMax = 16 * 1_024

    /// The header fields of every request to the collector.
    ///
    /// - Throws: ``Faults`` that name the file and never say what is in it.
    func fields() throws(Faults) -> DeliveryFields {
        var fields = [
            ("content-type", "application/json"), ("user-agent", "timeline-gateway"),
        ]
        if let fieldsFile {
            guard let data = FileManager.default.contents(atPath: fieldsFile),
                data.count <= Self.fieldsBytesMax,
                let text = String(validating: data, as: UTF8.self)
            else {
                throw Faults(
                    "tracing.headers",
                    "\(fieldsFile) is no readable text of at most \(Self.fieldsBytesMax) bytes")
            }
            for (number, line) in text.split(
                separator: "\n", omittingEmptySubsequences: false
            ).enumerated() {
                let line = line.trimmingCharacters(in: .whitespacesAndNewlines)
                if line.isEmpty || line.hasPrefix("#") { continue }
                let parts = line.split(separator: ":", maxSplits: 1)
                let name = parts[0].trimmingCharacters(in: .whitespaces)
                let value = parts.dropFirst().first?.trimmingCharacters(in: .whitespaces) ?? ""
                guard !name.isEmpty, !value.isEmpty,
                    !fields.contains(where: { $0.0 == name.lowercased() })
                else {
                    throw Faults(
                        "tracing.headers",
                        "line \(number + 1) of \(fieldsFile) must be NAME: VALUE, of a name "
                            + "that is not set already")
                }
                fields.append((name.lowercased(), value))
            }
        }
        do throws(DeliveryError) {
            return try DeliveryFields(fields.map { (name: $0.0, value: $0.1) })
        } catch {
            throw Faults(
                "tracing.headers", "\(fieldsFile ?? "") has what is no header field")
        }
    }

    /// Reads the files it names, as the gateway would.
    ///
    /// - Throws: ``Faults`` with every option whose file is wrong.
    func checkFiles() throws(Faults) {
        var faults = Faults()
        do throws(Faults) {
            _ = try fields()
        } catch {
            faults.add(error, under: "")
        }
        if let trust {
            do throws(TLSError) {
                try PEMSource.file(trust).checkCertificates()
            } catch {
                faults.add("tracing.ca", error.message)
            }
        }
        guard faults.isEmpty else { throw faults }
    }
}
