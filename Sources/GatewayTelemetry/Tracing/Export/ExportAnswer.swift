import WidgetModel

/// The result of sending spans to a collector (OTLP 1.x, section "OTLP/HTTP Response").
package enum ExportAnswer: Sendable, Equatable {
    /// The collector accepted the spans except for this number.
    case accepted(rejected: Int)
    /// The spans may be sent again, after this many seconds if stated.
    case retry(after: Int64?)
    /// The spans were rejected permanently.
    case refused

    /// Interprets a response. `retryAfter` is in seconds. Of the `body`, an
    /// `ExportTraceServiceResponse`, only the number of rejected spans of a partial success is
    /// used.
    package init(status: Int, retryAfter: Int64?, body: [UInt8]) {
        switch status {
        case 200..<300: self = .accepted(rejected: Self.rejected(body))
        case 429, 502, 503, 504: self = .retry(after: retryAfter)
        default: self = .refused
        }
    }

    private static func rejected(_ body: [UInt8]) -> Int {
        guard let answer = try? JSONValue(parsing: body).objectValue,
            let partial = answer["partialSuccess"]?.objectValue
        else { return 0 }
        // Numbers of 64 bits are strings in protobuf's JSON, and may be numbers.
        let count =
            partial["rejectedSpans"]?.stringValue.flatMap { Int($0) }
            ?? partial["rejectedSpans"]?.integerValue.map { Int(clamping: $0) }
        return max(0, count ?? 0)
    }
}
