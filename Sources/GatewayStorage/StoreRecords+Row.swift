import Foundation
import GRDB

/// Conversion of database rows to values. The tables are strict, and columns read here without a
/// default are not null, so that each column has the expected type.

extension LogRow {
    /// Creates a value from the columns sequence, app, type, source, event id, acceptance time,
    /// payload.
    init(_ row: Row) throws {
        guard let type = LogEntryType(rawValue: row[2]) else {
            throw StoreError.corrupt(reason: "the log contains a row of unknown type")
        }
        self.init(
            sequence: row[0], app: row[1], type: type, source: row[3], eventID: row[4],
            acceptedAt: row[5], payload: row[6] ?? Data())
    }
}

extension CatalogRow {
    /// Creates a value from the columns app, sequence, payload.
    init(_ row: Row) {
        self.init(app: row[0], sequence: row[1], payload: row[2] ?? Data())
    }
}

extension RegistrationRow {
    /// Creates a value from the columns app, client, payload, time of update, time last seen.
    init(_ row: Row) throws {
        self.init(
            key: RegistrationKey(app: row[0], client: row[1]), payload: row[2] ?? Data(),
            updatedAt: row[3], seenAt: row[4])
    }
}

extension EpochRow {
    /// Creates a value from the columns ordinal, id, opening sequence, void, opening time.
    init(_ row: Row) {
        self.init(
            ordinal: row[0], id: UInt64(bitPattern: row[1] as Int64), openedAtSequence: row[2],
            isVoid: row[3], openedAt: row[4])
    }
}
