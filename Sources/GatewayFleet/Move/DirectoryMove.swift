import Foundation
import GatewayCore
import GatewayPostgres
import GatewayRecords
import GatewaySettings
import GatewaySigning
import GatewayStorage

/// The move of a stopped gateway's data directory to the prepared, empty log of a fleet, which goes
/// on from it: cursors, events, digests and entity tags stay valid. It may be broken off at any
/// point and repeated. The directory is only read.
package struct DirectoryMove {
    /// The part that is being written, with the number of its rows that are.
    package enum Progress: Sendable, Equatable {
        case registrations(Int)
        case log(Int, of: Int)
    }

    /// The result of a move.
    package struct Outcome: Sendable, Equatable {
        /// The sequence before the first record.
        package let floor: UInt64
        /// The sequence of the last record, behind which the fleet goes on.
        package let head: UInt64
        /// The rows that were moved; `nil` if all of it was moved before.
        package let counts: MovedCounts?
    }

    /// The reason why a move failed.
    package enum Failure: Error, Equatable, CustomStringConvertible {
        /// An older version wrote the store.
        case olderStore
        /// The move was begun with another key of the fleet.
        case otherKey
        /// The log of the fleet has something else than the directory.
        case incomplete

        package var description: String {
            switch self {
            case .olderStore:
                "an older version wrote the store: start and stop this version on it once"
            case .otherKey:
                "the move was begun with another key of the cluster; use that one"
            case .incomplete:
                "the database does not have exactly what the directory has: something else wrote to"
                    + " it; empty and prepare it, and move again"
            }
        }
    }

    /// The maximum number of rows that are written together.
    package var rowsPerPortion = BatchLimits().changes

    private let store: SQLiteStore
    private let lock: DirectoryLock
    private let ring: KeyRing
    /// The keys of the local issuer; `nil` if there is none.
    private let tokens: KeyRing?
    private let key: FleetKey
    private let translation: StoreTranslation
    private let epochs: [MovedEpoch]

    /// Locks and reads the directory; nothing is written.
    ///
    /// - Parameters:
    ///   - timing: The timing of the keys that sign notifications.
    ///   - key: The key of the fleet.
    /// - Throws: `StoreError`, `SigningError`, ``UnreadableRow``, ``Failure/olderStore``.
    package init(_ directory: String, timing: KeyRing.Timing, key: FleetKey) throws {
        lock = try DirectoryLock(directory: directory)
        store = try SQLiteStore(readingOnly: directory)
        guard try store.hasNewestSchema() else { throw Failure.olderStore }
        ring = try KeyRingStore(directory: directory + "/keys").openExisting(timing: timing)
        let issuer = directory + "/issuer"
        tokens =
            FileManager.default.fileExists(atPath: issuer + "/ring.json")
            ? try KeyRingStore(directory: issuer).openExisting(timing: .tokens) : nil
        self.key = key
        translation = try StoreTranslation(
            secret: store.secret, key: key, head: store.head, catalogs: try store.catalogs())
        epochs = StoreTranslation.epochs(
            try store.epochs(), hasLoss: try store.suspectedLoss() != nil)
    }

    /// The identity of the store in its present state: every start of a gateway opens an epoch.
    private var source: Int64 {
        get throws {
            let hash = SipHash(
                secret: try derivedKey(
                    from: Array(store.secret), for: "timeline-gateway move", count: 16))
            let epoch = epochs.last
            return Int64(
                bitPattern: hash(UInt64(epoch?.ordinal ?? 0), UInt64(epoch?.nonce ?? 0), 0))
        }
    }

    /// Writes everything.
    ///
    /// - Parameters:
    ///   - now: In seconds since 1970.
    ///   - mark: Called once everything is written, before nodes may write: no gateway may serve
    ///     from the directory from here on. Called again when a finished move is repeated.
    ///   - report: Called after each portion.
    /// - Throws: `PostgresError`, `StoreError`, `SecretError`, `SigningError`, ``UnreadableRow``,
    ///   ``Failure``, an error of `mark`.
    package func run(
        on connection: PostgresAdministration, now: Int64, mark: () throws -> Void,
        report: (Progress) -> Void = { _ in }
    ) throws -> Outcome {
        let move = ClusterMove(connection)
        let (floor, head) = (store.floor, store.head)
        let arrived = try move.begin(
            source: try source, floor: Int64(floor), head: Int64(head),
            highestOrdinal: epochs.map(\.ordinal).max() ?? 0)
        guard let arrived else {
            try mark()
            return Outcome(floor: floor, head: head, counts: nil)
        }
        let secrets = try translation.secrets(ring, tokens: tokens, now: now)
        for row in secrets { try move.write(row) }
        try checkKey(of: try move.secrets())
        try move.write(epochs)
        let registrations = try writeRegistrations(move, report)
        let catalogs = try writeLog(move, after: UInt64(arrived), report).catalogRows()
        // One by one: each may be as large as a batch.
        for row in catalogs { try move.write([row]) }
        let counts = MovedCounts(
            registrations: Int64(registrations), catalogs: Int64(catalogs.count),
            epochs: Int64(epochs.count), secrets: Int64(secrets.count))
        try mark()
        guard try move.finish(counts) else { throw Failure.incomplete }
        return Outcome(floor: floor, head: head, counts: counts)
    }

    /// Checks that all that is written is wrapped under one key.
    private func checkKey(of rows: [SecretRow]) throws {
        for row in rows {
            do throws(SecretError) {
                _ = try key.unwrap(row.wrapped, kind: row.kind, name: row.name)
            } catch .notAuthentic {
                throw Failure.otherKey
            }
        }
    }

    private func writeRegistrations(
        _ move: ClusterMove, _ report: (Progress) -> Void
    ) throws -> Int {
        var count = 0
        try store.registrations(batch: rowsPerPortion) { rows in
            try move.write(try rows.map { try translation.registration($0) })
            count += rows.count
            report(.registrations(count))
        }
        return count
    }

    /// Returns the translation behind the last row.
    private func writeLog(
        _ move: ClusterMove, after arrived: UInt64, _ report: (Progress) -> Void
    ) throws -> StoreTranslation {
        var translation = translation
        let count = Int(store.head - store.floor)
        var done = 0
        try store.replay(after: store.floor, batch: rowsPerPortion) { rows in
            let batches = try translation.batches(of: rows, after: arrived)
            if let last = batches.last {
                let reached = try move.append(batches)
                guard reached == last.after + Int64(last.records.count) else {
                    throw PostgresError.unexpectedAnswer
                }
            }
            done += rows.count
            report(.log(done, of: count))
        }
        return translation
    }
}
