import CurlMulti
import Foundation
import GatewayTLS
import WidgetModel

package struct TracingConfiguration: Sendable {
    package var endpoint: CollectorEndpoint
    /// The share of the traces begun here that is recorded.
    package var share = 1.0
    /// A file with header fields for the collector, which may be secrets.
    package var fieldsFile: String?
    /// Certificates in PEM to trust at the collector, instead of the system's.
    package var trust: String?
    /// The maximum wait for the collector's response, in seconds.
    package var timeoutSeconds: Int64 = 10
    /// `service.name`.
    package var service = "timeline-gateway"
    /// Further resource attributes of this gateway, by name.
    package var attributes: [(name: String, value: String)] = []

    /// The maximum size of the file of header fields, in bytes.
    private static let fieldsBytesMax = 16 * 1_024

    /// The header fields of every request to the collector. Throws ``Faults`` that name the file
    /// but never reveal its content.
    package func fields() throws(Faults) -> CurlFields {
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
                    "\(fieldsFile) is not readable text of at most \(Self.fieldsBytesMax) bytes")
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
                        "line \(number + 1) of \(fieldsFile) must be NAME: VALUE, with a name "
                            + "that is not already set")
                }
                fields.append((name.lowercased(), value))
            }
        }
        do throws(CurlError) {
            return try CurlFields(fields.map { (name: $0.0, value: $0.1) })
        } catch {
            throw Faults(
                "tracing.headers", "\(fieldsFile ?? "") contains an invalid header field")
        }
    }

    /// Reads the configured files, as the gateway would. Throws ``Faults`` with every option whose
    /// file is invalid.
    package func checkFiles() throws(Faults) {
        var faults = Faults()
        do throws(Faults) { _ = try fields() } catch { faults.add(error, under: "") }
        if let trust {
            do throws(TLSError) {
                _ = try PEMSource.file(trust).certificateText()
            } catch {
                faults.add("tracing.ca", error.message)
            }
        }
        guard faults.isEmpty else { throw faults }
    }
}
