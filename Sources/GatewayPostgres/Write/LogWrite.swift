/// A write of one caller, which is appended as a whole or not at all.
package struct LogWrite: Sendable {
    /// A change with the identity of its event.
    package struct Change: Sendable {
        /// The keyed hash of the event's identity; `nil` for a change that cannot be repeated.
        package let key: UInt128?
        /// The keyed hash of the event's data.
        package let digest: Int64
        /// The record in stored form.
        package let record: [UInt8]

        package init(key: UInt128?, digest: Int64, record: [UInt8]) {
            self.key = key
            self.digest = digest
            self.record = record
        }
    }

    package enum Content: Sendable {
        /// The changes of a post, at most ``BatchLimits/changes``.
        case changes([Change])
        /// A registration that is put or patched, or removed.
        case registration(RegistrationWrite)
        /// A catalog in place of the one at a sequence: that of the app's newest catalog or
        /// removal; 0 where the app never had one.
        case catalog(payload: [UInt8], replacing: Int64)
        /// The removal of the app, whose newest catalog is the one at a sequence.
        case removal(replacing: Int64)
        /// A reload that an operator requested.
        case reload(scope: [UInt8])
    }

    /// A number that the caller recognizes the outcome by; unique among the writes in flight.
    package let ticket: UInt64
    /// The app that it belongs to, and whose share of the queue it uses.
    package let app: String
    /// The sequence of the app's last removal that the caller knows; 0 if it was never removed. What
    /// was decided before a removal is not written behind it.
    package let removal: Int64
    package let content: Content

    package init(ticket: UInt64, app: String, removal: Int64 = 0, _ content: Content) {
        self.ticket = ticket
        self.app = app
        self.removal = removal
        self.content = content
    }

    /// The number of records, without those of other clients that lose an address.
    var recordCount: Int {
        if case .changes(let changes) = content { changes.count } else { 1 }
    }

    /// The bytes that it adds to a batch.
    var byteCount: Int {
        switch content {
        case .changes(let changes): changes.reduce(0) { $0 + $1.record.count }
        case .registration(let write): write.byteCount
        // A catalog lies in the log and in its table.
        case .catalog(let payload, _): 2 * payload.count
        case .removal: 0
        case .reload(let scope): scope.count
        }
    }

    /// The registration that it writes.
    var registration: RegistrationWrite? {
        if case .registration(let write) = content { write } else { nil }
    }

    /// Whether the server can store the names.
    var hasStorableNames: Bool {
        guard let key = registration?.key else { return app.isStorableName }
        return key.app == app && key.isStorable
    }
}

/// The row of a registration as it is written.
package struct RegistrationContent: Sendable, Equatable {
    /// The keyed hash of the registration's content.
    package var digest: Int64
    /// The keyed hashes of app, name and value of each attribute.
    package var attributes: [UInt128]
    /// The keyed hashes of its push addresses.
    package var tokens: [UInt128]
    /// The day on which the client was seen, since 1970; 0 if this write is not by the client.
    package var seenDay: Int32
    /// The content, wrapped.
    package var payload: [UInt8]

    package init(
        digest: Int64, attributes: [UInt128] = [], tokens: [UInt128] = [], seenDay: Int32 = 0,
        payload: [UInt8]
    ) {
        self.digest = digest
        self.attributes = attributes
        self.tokens = tokens
        self.seenDay = seenDay
        self.payload = payload
    }
}

/// A registration that is put or patched, or removed.
package struct RegistrationWrite: Sendable {
    /// The key; its app is the write's.
    package let key: RegistrationKey
    /// The revision of the row that it was decided from; 0 for none.
    package let base: Int64
    /// The row; `nil` removes it.
    package let content: RegistrationContent?

    package init(key: RegistrationKey, base: Int64, content: RegistrationContent?) {
        self.key = key
        self.base = base
        self.content = content
    }

    /// The bytes of the row, with each address and attribute as text.
    var byteCount: Int {
        guard let content else { return 64 }
        return content.payload.count + 40 * (content.tokens.count + content.attributes.count) + 128
    }
}
