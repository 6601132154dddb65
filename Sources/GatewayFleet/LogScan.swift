import GatewayPostgres
import GatewayStorage

/// Rows of the log that are collected up to a number and a size; there is always room for one.
struct RowCollection: Sendable {
    /// The payload bytes after which no row is added.
    private static let bytesMax = 8 << 20

    private let countMax: Int
    private var bytes = 0
    private(set) var rows: [LogRow] = []
    /// Whether rows are missing that would have been added.
    private(set) var isCut = false

    init(countMax: Int) { self.countMax = max(1, countMax) }

    /// Whether no row is added any more.
    var isFull: Bool { isCut || rows.count >= countMax }

    mutating func append(_ row: LogRow) {
        if !rows.isEmpty, bytes >= Self.bytesMax { isCut = true }
        guard !isFull else { return }
        bytes += row.payload.count
        rows.append(row)
    }
}

/// A listing of rows in order, over as many readings of batches as it needs.
///
/// A value without I/O, clock or lock.
struct LogScan: Sendable {
    private var next: Int64
    private let last: Int64
    private var collection: RowCollection

    init(after sequence: UInt64, through last: UInt64, limit: Int) {
        next = Int64(clamping: sequence) &+ 1
        self.last = Int64(clamping: last)
        if next < 0 { next = .max }
        collection = RowCollection(countMax: limit)
    }

    /// The batches to read next; `nil` at the end.
    var range: BatchRange? {
        guard next <= last, next < .max, !collection.isFull else { return nil }
        return BatchRange(first: next, last: last, .forwards)
    }

    var rows: [LogRow] { collection.rows }

    /// Goes on by the batches that were read; none of them if the log has no more.
    mutating func receive(_ batches: [StoredBatch]) throws(PostgresError) {
        guard !batches.isEmpty else {
            next = .max
            return
        }
        for batch in batches where !collection.isFull {
            for row in try batch.rows() {
                let sequence = Int64(clamping: row.sequence)
                if sequence >= next, sequence <= last { collection.append(row) }
            }
            next = batch.head.position.last + 1
        }
    }
}

/// A listing of an app's changes, the latest first, over as many readings of batches as it needs:
/// it ends with what was found after as many sequences or bytes as one listing may look at.
///
/// A value without I/O, clock or lock.
struct ChangeScan: Sendable {
    /// The maximum number of sequences to look at.
    static let sequencesMax: Int64 = 50_000
    /// The bytes of batches after which a listing ends.
    static let bytesMax = 32 << 20

    private let app: String
    /// The sequence below which everything is still to be looked at.
    private var end: Int64
    /// The lowest sequence to look at, and the lowest one wanted.
    private var first: Int64
    private var lowest: Int64
    private var bytes = 0
    private var collection: RowCollection

    /// - Parameters:
    ///   - before: The upper limit of the sequences, exclusive.
    ///   - after: The lower limit of the sequences, exclusive.
    ///   - head: The highest sequence.
    init(app: String, before: UInt64, after: UInt64, head: UInt64, limit: Int) {
        self.app = app
        end = min(Int64(clamping: before), Int64(clamping: head) + 1)
        lowest = min(Int64(clamping: after), .max - 1) + 1
        first = max(lowest, end - Self.sequencesMax)
        collection = RowCollection(countMax: limit)
    }

    /// The batches to read next; `nil` at the end.
    var range: BatchRange? {
        guard first < end, !collection.isFull, bytes < Self.bytesMax else { return nil }
        return BatchRange(first: first, last: end - 1, .backwards)
    }

    var rows: [LogRow] { collection.rows }

    /// The sequence before which to continue; `nil` at the beginning of the log.
    var next: UInt64? {
        let next = collection.isFull ? (rows.last?.sequence).map { Int64($0) } ?? end : end
        return next > lowest ? UInt64(next) : nil
    }

    /// Goes on by the batches that were read, the highest first.
    ///
    /// - Parameter floor: The highest sequence that the log may not have any more.
    mutating func receive(_ batches: [StoredBatch], floor: Int64) throws(PostgresError) {
        lowest = max(lowest, floor + 1)
        first = max(first, lowest)
        guard !batches.isEmpty else {
            // The log has nothing there any more.
            (lowest, first) = (max(lowest, end), max(first, end))
            return
        }
        for batch in batches where !collection.isFull {
            for row in try batch.rows().reversed() {
                let sequence = Int64(clamping: row.sequence)
                guard sequence < end, sequence >= first else { continue }
                if row.app == app, row.type == .change { collection.append(row) }
            }
            bytes += batch.body.count
            end = max(first, min(end, batch.head.first))
        }
    }
}
