import WidgetModel

/// What came of handing spans to a collector (OTLP 1.x, section "OTLP/HTTP Response").
package enum ExportAnswer: Sendable, Equatable {
    /// They were taken, but for so many.
    case accepted(rejected: Int)
    /// They may be sent again, not before so many seconds if it says so.
    case retry(after: Int64?)
    /// They will never be taken.
    case refused

    /// What an answer means.
    ///
    /// - Parameters:
    ///   - retryAfter: The seconds that `Retry-After` asks for.
    ///   - body: An `ExportTraceServiceResponse`, of which only the number of spans counts that a
    ///     partial success left out.
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
        // Numbers of 64 bits are texts in protobuf's JSON, and may be numbers.
        let count =
            partial["rejectedSpans"]?.stringValue.flatMap { Int($0) }
            ?? partial["rejectedSpans"]?.integerValue.map { Int(clamping: $0) }
        return max(0, count ?? 0)
    }
}
