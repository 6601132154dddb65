import Foundation
import GRDB

package enum LogEntryType: Int, Sendable {
    /// A data change of a backend.
    case change = 1
    /// A catalog, which is in force for all later rows of its app.
    case catalog = 2
    /// A reload requested by an operator.
    case reload = 3
    /// The removal of an app: its catalogs and registrations are deleted, its earlier rows void.
    case removal = 4
    /// A start of Live Activities.
    case start = 5
}

/// A row of the log, which is the total order in which everything was accepted.
package struct LogRow: Sendable, Equatable {
    /// The position in the total order; starts at 1, has no gaps, and is never reused.
    package let sequence: UInt64
    /// The bundle id of the app that the row belongs to.
    package let app: String
    package let type: LogEntryType
    /// The source of the event, for rows that `event(app:source:id:)` must find; otherwise `nil`.
    package let source: String?
    /// The id of the event, unique within its source.
    package let eventID: String?
    /// The time of acceptance, ms since 1970.
    package let acceptedAt: Int64
    /// The opaque content.
    package let payload: Data
}

/// A version of an app's catalog.
package struct CatalogRow: Sendable, Equatable {
    /// The bundle id of the app.
    package let app: String
    /// The sequence of the log row that put the catalog in force.
    package let sequence: UInt64
    /// The opaque content.
    package let payload: Data
}

package struct RegistrationKey: Sendable, Hashable {
    /// The bundle id of the app.
    package let app: String
    /// The id of the client within the app.
    package let client: String

    package init(app: String, client: String) {
        self.app = app
        self.client = client
    }
}

package struct RegistrationRow: Sendable, Equatable {
    package let key: RegistrationKey
    /// The opaque content.
    package let payload: Data
    /// The time of the last update, ms since 1970.
    package let updatedAt: Int64
    /// The time at which the client was last updated or seen, ms since 1970.
    package let seenAt: Int64
}

package struct RegistrationPage: Sendable {
    /// The registrations, ordered by client id (as bytes).
    package let rows: [RegistrationRow]
    /// Whether there are more after the last row.
    package let hasMore: Bool
}

/// An epoch: the part of the log written by one start of the gateway.
package struct EpochRow: Sendable, Equatable {
    /// The number of the epoch; later ones have higher ordinals.
    package let ordinal: Int64
    /// The random id that cursors contain.
    package let id: UInt64
    /// The head of the log when the epoch was opened; the previous epoch ends here.
    package let openedAtSequence: UInt64
    package let isVoid: Bool
    /// The time of opening, ms since 1970.
    package let openedAt: Int64
}

/// The result of a job whose transaction is on disk.
package struct Committed<Value: Sendable>: Sendable {
    package let value: Value
    /// The highest sequence on disk after the transaction, including rows of other jobs.
    package let head: UInt64
}

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
