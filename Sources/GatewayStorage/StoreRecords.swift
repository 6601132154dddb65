import Foundation

/// What a row of the log holds.
package enum LogEntryType: Int, Sendable {
    /// A data change of a backend.
    case change = 1
    /// A catalog that is in force for every later row of its app.
    case catalog = 2
    /// A reload ordered by an operator.
    case reload = 3
    /// The end of an app: its catalogs and registrations are gone, and its rows before this one are
    /// nobody's any more.
    case removal = 4
}

/// One row of the log: the total order in which everything was accepted.
package struct LogRow: Sendable, Equatable {
    /// Place in the total order; starts at 1, has no gaps, is never used again.
    package let sequence: UInt64
    /// Bundle id of the app that the row belongs to.
    package let app: String
    /// What the payload is.
    package let type: LogEntryType
    /// Origin of the event, if the row is to be found by `event(app:source:id:)`.
    package let source: String?
    /// Name of the event, unique within its source.
    package let eventID: String?
    /// When it was accepted, in milliseconds since 1970.
    package let acceptedAt: Int64
    /// The opaque content.
    package let payload: Data
}

/// One version of the catalog of an app.
package struct CatalogRow: Sendable, Equatable {
    /// Bundle id of the app.
    package let app: String
    /// Sequence of the log row from which on this catalog is in force.
    package let sequence: UInt64
    /// The opaque content.
    package let payload: Data
}

/// Names one registration.
package struct RegistrationKey: Sendable, Hashable {
    /// Bundle id of the app.
    package let app: String
    /// Id of the client within the app.
    package let client: String

    /// Names the registration of `client` with `app`.
    package init(app: String, client: String) {
        self.app = app
        self.client = client
    }
}

/// One registration as it is on disk.
package struct RegistrationRow: Sendable, Equatable {
    /// Whose registration it is.
    package let key: RegistrationKey
    /// The opaque content.
    package let payload: Data
    /// When it was last put, in milliseconds since 1970.
    package let updatedAt: Int64
    /// When the client was last put or touched, in milliseconds since 1970.
    package let seenAt: Int64
}

/// One page of a listing of registrations.
package struct RegistrationPage: Sendable {
    /// The registrations, ordered by client id (as bytes).
    package let rows: [RegistrationRow]
    /// Whether more follow after the last row.
    package let hasMore: Bool
}

/// One epoch: a stretch of the log written by one start of the gateway.
package struct EpochRow: Sendable, Equatable {
    /// Place among the epochs; later ones have higher ordinals.
    package let ordinal: Int64
    /// The random name that cursors carry.
    package let id: UInt64
    /// The head of the log when it was opened; the epoch before it ends here.
    package let openedAtSequence: UInt64
    /// Whether its cursors no longer say anything.
    package let isVoid: Bool
    /// When it was opened, in milliseconds since 1970.
    package let openedAt: Int64
}

/// The result of a job whose transaction is on disk.
package struct Committed<Value: Sendable>: Sendable {
    /// What the job returned.
    package let value: Value
    /// Highest sequence on disk after the transaction, other jobs' rows included.
    package let head: UInt64
}
