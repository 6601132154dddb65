/// A row of the log of the source, or several of one time.
package struct MovedBatch: Sendable, Equatable {
    /// An event among the records.
    package struct Event: Sendable, Equatable {
        /// The keyed hash of the event.
        package var key: UInt128
        package var digest: Int64
        /// The place of its record, from 1.
        package var place: Int32

        package init(key: UInt128, digest: Int64, place: Int32) {
            self.key = key
            self.digest = digest
            self.place = place
        }
    }

    /// The sequence before the first record.
    package var after: Int64
    /// The time of acceptance, ms since 1970.
    package var at: Int64
    /// The records, at least one.
    package var records: [LogRecord]
    /// The events among them.
    package var events: [Event]

    package init(after: Int64, at: Int64, records: [LogRecord], events: [Event] = []) {
        self.after = after
        self.at = at
        self.records = records
        self.events = events
    }
}

package struct MovedRegistration: Sendable, Equatable {
    package var key: RegistrationKey
    /// Its first revision here.
    package var revision: Int64
    package var content: RegistrationContent
    /// The time of the last update, ms since 1970.
    package var updatedAt: Int64

    package init(
        key: RegistrationKey, revision: Int64, content: RegistrationContent, updatedAt: Int64
    ) {
        self.key = key
        self.revision = revision
        self.content = content
        self.updatedAt = updatedAt
    }
}

/// A catalog of the source, or the removal of an app.
package struct MovedCatalog: Sendable, Equatable {
    package var app: String
    package var sequence: Int64
    /// The catalog; `nil` for a removal.
    package var payload: [UInt8]?

    package init(app: String, sequence: Int64, payload: [UInt8]?) {
        self.app = app
        self.sequence = sequence
        self.payload = payload
    }
}

package struct MovedEpoch: Sendable, Equatable {
    /// Its number.
    package var ordinal: UInt32
    /// The number that distinguishes it from others with this ordinal.
    package var nonce: UInt32
    /// The head of the log when it was opened.
    package var openedAt: Int64
    /// Whether its cursors, and those of older epochs, are void.
    package var isVoid: Bool

    package init(ordinal: UInt32, nonce: UInt32, openedAt: Int64, isVoid: Bool) {
        self.ordinal = ordinal
        self.nonce = nonce
        self.openedAt = openedAt
        self.isVoid = isVoid
    }
}

/// The numbers of rows that a source has.
package struct MovedCounts: Sendable, Equatable {
    /// Of registrations.
    package var registrations: Int64
    /// Of catalogs and removals of apps.
    package var catalogs: Int64
    /// Of epochs.
    package var epochs: Int64
    /// Of secrets.
    package var secrets: Int64

    package init(registrations: Int64, catalogs: Int64, epochs: Int64, secrets: Int64) {
        self.registrations = registrations
        self.catalogs = catalogs
        self.epochs = epochs
        self.secrets = secrets
    }
}
