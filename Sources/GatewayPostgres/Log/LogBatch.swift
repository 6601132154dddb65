/// A batch as it was read from the log.
package struct LogBatch: Sendable, Equatable {
    /// The sequence of its first change.
    package let first: Int64
    /// The sequence of its last change, and the chain up to there.
    package let position: LogPosition
    package let node: Int64
    /// The time at which it was written, in milliseconds since 1970 by the server's clock.
    package let at: Int64
    /// The records, the first with the sequence ``first``; none for a batch that the reader knew.
    package let records: [LogRecord]
}
