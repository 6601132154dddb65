/// The text format of the metrics.
package enum ExpositionFormat: Sendable, CaseIterable {
    /// Prometheus text 0.0.4.
    case prometheus
    /// OpenMetrics text 1.0.0.
    case openMetrics

    /// Chooses the format for a client's `Accept` fields: the preferred one, or Prometheus text if
    /// there is no preference or the preferred one is not supported.
    package init(accept: [String]) {
        var preferred: (format: Self, quality: Double)?
        for range in accept.flatMap({ $0.split(separator: ",") }) {
            let parts = range.split(separator: ";").map(Self.trimmed)
            var parameters: [String: String] = [:]
            for part in parts.dropFirst() {
                guard let mark = part.firstIndex(of: "=") else { continue }
                let name = Self.trimmed(part[..<mark]).lowercased()
                parameters[name] = Self.trimmed(part[part.index(after: mark)...])
            }
            let version = parameters["version"]
            let format: Self
            switch parts.first?.lowercased() {
            case "application/openmetrics-text" where version == nil || version == "1.0.0":
                format = .openMetrics
            case "text/plain" where version == nil || version == "0.0.4": format = .prometheus
            case "text/*", "*/*": format = .prometheus
            default: continue
            }
            let quality = parameters["q"].map { Double($0) ?? 0 } ?? 1
            guard quality > 0 else { continue }
            if preferred.map({ quality > $0.quality }) ?? true { preferred = (format, quality) }
        }
        self = preferred?.format ?? .prometheus
    }

    private static func trimmed(_ text: Substring) -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\"" }
        return String(text.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }

    package var contentType: String {
        switch self {
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics:
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
        }
    }
}
