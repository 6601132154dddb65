/// The place and the time of a batch.
package struct BatchHead: Sendable, Equatable {
    /// The sequence of its first record.
    package let first: Int64
    /// The sequence of its last record, and the chain up to there.
    package let position: LogPosition
    /// The time at which it was written, in milliseconds since 1970 by the server's clock.
    package let at: Int64
}

/// A batch whose records are not decoded yet: the thread that reads it has others to serve.
package struct StoredBatch: Sendable, Equatable {
    /// The place and the time.
    package let head: BatchHead
    /// The records in stored form.
    package let body: [UInt8]

    /// Decodes the records, the first with the sequence `head.first`.
    ///
    /// - Throws: `PostgresError.unreadableRecord`.
    package func records() throws(PostgresError) -> [LogRecord] {
        try LogRecord.records(in: body, of: head)
    }
}

/// A range of sequences whose batches are read, from either end.
package struct BatchRange: Sendable, Equatable {
    package enum Direction: Sendable {
        /// From the lowest sequence.
        case forwards
        /// From the highest sequence.
        case backwards
    }

    /// The lowest sequence.
    package var first: Int64
    /// The highest sequence.
    package var last: Int64
    package var direction: Direction

    package init(first: Int64, last: Int64, _ direction: Direction) {
        self.first = first
        self.last = last
        self.direction = direction
    }
}

extension LogRecord {
    /// Decodes the records of a batch.
    ///
    /// - Throws: `PostgresError.unreadableRecord` when a record is of a newer form, or the records
    ///   are not as many as the sequences.
    static func records(in body: [UInt8], of batch: BatchHead) throws(PostgresError) -> [LogRecord]
    {
        // The batch that a log begins with has no record and no time.
        if body.isEmpty, batch.at == 0 { return [] }
        do throws(LogRecord.Unreadable) {
            let records = try records(in: body)
            guard Int64(records.count) == batch.position.last - batch.first + 1 else {
                throw .damaged
            }
            return records
        } catch {
            throw .unreadableRecord(error, batch: batch.position.last)
        }
    }
}
