/// The format of log records, one line each.
package enum LogFormat: String, Sendable, CaseIterable {
    /// `time=… level=… label=… message="…" field=value`.
    case logfmt
    /// An object.
    case json
}
