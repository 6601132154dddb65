import Foundation
import GatewayCore
import GatewayPostgres
import GatewayRecords
import GatewaySigning
import GatewayStorage
import WidgetModel

/// Translates the rows of a store, in the order of its log, to those of a fleet's log that goes on
/// from it.
struct StoreTranslation {
    private let hashes: FleetHashes
    private let secret: Data
    private let key: FleetKey
    private let seal: RegistrationSeal
    private let head: UInt64
    /// The catalogs by sequence: the log only announces them.
    private let catalogs: [UInt64: CatalogRow]
    /// The sequences at which apps were removed, up to the last row that was translated.
    private var removals: [String: UInt64] = [:]
    /// The apps of catalogs that were deleted without the removal of their app so far.
    private var withoutCatalog: Set<String> = []

    /// Creates a translation.
    ///
    /// - Parameters:
    ///   - secret: The secret of the store, which becomes that of the fleet's log.
    ///   - key: The key of the fleet.
    ///   - head: The end of the store's log.
    /// - Throws: `SigningError` when OpenSSL cannot derive a key; ``UnreadableRow``.
    init(secret: Data, key: FleetKey, head: UInt64, catalogs: [CatalogRow]) throws {
        let hashes = try FleetHashes(secret: Array(secret))
        for row in catalogs {
            _ = try UnreadableRow.naming("the catalog of the app \(row.app)") {
                try CatalogDocument.read(row.payload, of: row.app, at: row.sequence, hashes.store)
            }
        }
        self.hashes = hashes
        self.secret = secret
        self.key = key
        seal = RegistrationSeal(key)
        self.head = head
        self.catalogs = Dictionary(catalogs.map { ($0.sequence, $0) }) { $1 }
    }

    // MARK: The log

    /// Returns the next rows of the log as batches, one for each time of acceptance. They are as many
    /// and as large as the rows are.
    ///
    /// - Parameter arrived: The sequence up to which the fleet has the log: nothing is returned up
    ///   to there.
    /// - Throws: ``UnreadableRow``.
    mutating func batches(of rows: [LogRow], after arrived: UInt64) throws -> [MovedBatch] {
        var batches: [MovedBatch] = []
        for row in rows {
            // Also of what has arrived, for the events behind it.
            if row.type == .removal {
                removals[row.app] = row.sequence
                withoutCatalog.remove(row.app)
            } else if row.type == .catalog, catalogs[row.sequence] == nil {
                withoutCatalog.insert(row.app)
            }
            guard row.sequence > arrived else { continue }
            if batches.last?.at != row.acceptedAt {
                batches.append(
                    MovedBatch(after: Int64(row.sequence) - 1, at: row.acceptedAt, records: []))
            }
            let (record, event) = try translated(row)
            let index = batches.count - 1
            batches[index].records.append(record)
            guard let event else { continue }
            batches[index].events.append(
                MovedBatch.Event(
                    key: event.key, digest: event.digest,
                    place: Int32(clamping: batches[index].records.count)))
        }
        return batches
    }

    private func translated(
        _ row: LogRow
    ) throws -> (record: LogRecord, event: (key: UInt128, digest: Int64)?) {
        let payload = Array(row.payload)
        switch row.type {
        case .change:
            let event = row.source.flatMap { source in
                row.eventID.map { LogRecord.Event(source: source, id: $0) }
            }
            let record = LogRecord(
                app: row.app, .change(event: event, payload: payload))
            let change = try UnreadableRow.naming("the change at \(row.sequence)") {
                try LogPayload.readChange(row.payload, limits: .none).change
            }
            guard let event else { return (record, nil) }
            let key = hashes.event(
                of: row.app, since: removals[row.app] ?? 0, source: event.source, id: event.id)
            return (record, (key, hashes.digest(of: change)))
        case .catalog:
            // Catalogs are deleted with their app, whose removal follows; until then nothing was
            // decided that still counts.
            guard let catalog = catalogs[row.sequence] else {
                return (LogRecord(app: row.app, .removal), nil)
            }
            return (LogRecord(app: row.app, .catalog(payload: Array(catalog.payload))), nil)
        case .reload: return (LogRecord(app: row.app, .reload(scope: payload)), nil)
        case .removal: return (LogRecord(app: row.app, .removal), nil)
        }
    }

    // MARK: Tables

    /// Returns the catalogs, and the last removal of each app that has one in the log, after all of
    /// it was translated.
    ///
    /// - Throws: ``UnreadableRow``.
    func catalogRows() throws -> [MovedCatalog] {
        if let app = withoutCatalog.min() {
            throw UnreadableRow(row: "the catalog of the app \(app)", reason: "it is missing")
        }
        let installed = catalogs.values.map {
            MovedCatalog(app: $0.app, sequence: Int64($0.sequence), payload: Array($0.payload))
        }
        return installed
            + removals.map { MovedCatalog(app: $0, sequence: Int64($1), payload: nil) }
    }

    /// Returns the row of a registration.
    ///
    /// - Throws: ``UnreadableRow``; `SecretError.cryptoFailed`.
    func registration(
        _ row: GatewayStorage.RegistrationRow
    ) throws -> MovedRegistration {
        let record = try UnreadableRow.naming("the registration of", row.key) {
            try StoredRegistration(row.payload, limits: .none).record(of: row.key.client)
        }
        let key = hashes.key(of: ClientKey(app: row.key.app, client: row.key.client))
        return MovedRegistration(
            // Below that of any write behind the head, and above 0, which stands for none.
            key: key, revision: Int64(head) << 16 | 1,
            content: try seal.content(
                Array(row.payload), record, of: key, hashes, seenAt: row.seenAt),
            updatedAt: row.updatedAt)
    }

    /// Returns the epochs.
    ///
    /// - Parameter hasLoss: Whether the store lost its end, or is a copy that may have: as at a
    ///   start, no cursor holds then.
    static func epochs(_ rows: [EpochRow], hasLoss: Bool) -> [MovedEpoch] {
        rows.map {
            MovedEpoch(
                ordinal: UInt32(truncatingIfNeeded: $0.ordinal),
                nonce: UInt32(truncatingIfNeeded: $0.id), openedAt: Int64($0.openedAtSequence),
                isVoid: $0.isVoid || hasLoss)
        }
    }

    // MARK: Secrets

    /// Returns the secret of the store, under which cursors, digests and entity tags stay valid,
    /// and the keys that sign notifications and tokens with their states.
    ///
    /// - Parameters:
    ///   - tokens: The keys of the local issuer; `nil` if the directory has none.
    ///   - now: In seconds since 1970.
    /// - Throws: `SecretError`, `SigningError`.
    func secrets(_ ring: KeyRing, tokens: KeyRing? = nil, now: Int64) throws -> [SecretRow] {
        let secret = try wrapped(.keyHash, name: "moved", Array(secret), from: now)
        return try [secret] + signingKeys(.signing, ring, now: now)
            + (tokens.map { try signingKeys(.issuer, $0, now: now) } ?? [])
    }

    private func signingKeys(
        _ kind: SecretKind, _ ring: KeyRing, now: Int64
    ) throws -> [SecretRow] {
        var published: [(key: SigningKey, from: Int64)] = []
        var retiring: [(key: SigningKey, until: Int64)] = []
        var since = now
        if case .signing(let time) = ring.signing.state { since = time }
        for entry in ring.others {
            switch entry.state {
            case .published(let from): published.append((entry.key, from))
            case .retiring(let until): retiring.append((entry.key, until))
            case .signing: break
            }
        }
        var rows: [SecretRow] = []
        for (index, entry) in retiring.enumerated() {
            // Of all that have begun a node signs with the newest.
            rows.append(
                try wrapped(
                    kind, entry.key, from: since - Int64(retiring.count - index),
                    until: entry.until))
        }
        var current = (key: ring.signing.key, from: since)
        let grace = ring.timing.signatureLifetime + ring.timing.publishLead
        for next in published.sorted(by: { $0.from < $1.from }) {
            rows.append(
                try wrapped(
                    // A gateway may have signed until now with a key whose successor was due.
                    kind, current.key, from: current.from,
                    until: max(next.from, now) + grace))
            current = (next.key, max(next.from, current.from + 1))
        }
        rows.append(try wrapped(kind, current.key, from: current.from))
        return rows
    }

    private func wrapped(
        _ kind: SecretKind, _ signing: SigningKey, from: Int64, until: Int64? = nil
    ) throws -> SecretRow {
        try wrapped(kind, name: signing.kid, try signing.pem(), from: from, until: until)
    }

    private func wrapped(
        _ kind: SecretKind, name: String, _ bytes: [UInt8], from: Int64, until: Int64? = nil
    ) throws -> SecretRow {
        SecretRow(
            kind: kind.rawValue, name: name, notBefore: from, notAfter: until,
            wrapped: try key.wrap(
                SecretBytes(copying: bytes), kind: kind.rawValue, name: name))
    }
}
