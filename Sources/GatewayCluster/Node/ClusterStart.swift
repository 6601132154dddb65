import Foundation
import GatewayStorage
import Logging

/// The start of a node: its store goes on where it ended, or begins anew from the database.
package struct ClusterStart: Sendable {
    package let store: SQLiteStore
    package let node: ClusterNode

    /// The items that are read at once.
    private static let itemsAtOnce: Int64 = 2_000
    /// The most batches that are repeated one after the other: to begin anew is faster.
    private static let behindMax: Int64 = 1_000_000

    /// New keys for the stores of a cluster.
    static func newSecrets() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<StoreSecrets.byteCount).map { _ in
            UInt8.random(in: 0...255, using: &generator)
        }
    }

    static let secretsPlace = "secrets"

    /// Opens the store of a node.
    ///
    /// - Parameters:
    ///   - attempt: The number of attempts before.
    ///   - open: Opens the store there, with the node.
    ///   - discard: Removes the store's files, which are of no use to the cluster.
    /// - Throws: `PostgresError`, ``Seal/Fault``, `StoreError`; ``ClusterNode/Fault/otherCluster``.
    package init(
        _ configuration: ClusterNode.Configuration, attempt: Int = 0, logger: Logger,
        open: (any StoreReplication) throws -> SQLiteStore, discard: () throws -> Void
    ) async throws {
        let connection = try ClusterConnection(configuration.address.servers(at: attempt))
        guard
            let row = try connection.rows(
                "SELECT log_id, format, secrets FROM timeline.cluster"
            ).first
        else { throw PostgresError.schema(reason: "the cluster is not prepared") }
        let log = try row.uuid(0)
        let format = try row.integer(1)
        guard format == ClusterDatabase.format else {
            throw PostgresError.schema(
                reason: "the rows have format \(format), this program knows"
                    + " \(ClusterDatabase.format)")
        }
        let keys = try configuration.seal.open(try row.bytes(2), for: Self.secretsPlace)
        // A store with this position has begun to load.
        let nowhere = ClusterPosition(log: log, number: -1, id: 0)
        node = ClusterNode(
            configuration, secrets: StoreSecrets(keys), position: nowhere, logger: logger)
        let store = try open(node)
        let present = try Self.position(of: store, log)
        // The node commits before it trusts what it reads.
        _ = try ClusterDatabase.present(
            configuration, at: present ?? nowhere, begins: true, generation: nil, connection)
        let (view, _) = try ClusterDatabase.look(connection, from: present ?? nowhere)
        guard view.hasQuorum || !configuration.waitsForStandby else {
            throw PostgresError.connectionLost(reason: "\(ClusterNode.Fault.noQuorum)")
        }
        if let present {
            if view.ownID == present.id, view.newest.number - present.number <= Self.behindMax,
                try ClusterDatabase.hasAll(behind: present, connection)
            {
                node.begin(at: present, in: store)
                self.store = store
                return
            }
            if view.hasLost(present) {
                logger.critical(
                    "the database lost the end of the log",
                    metadata: ["batch": "\(present.number)", "newest": "\(view.newest.number)"])
                try ClusterDatabase.reportLoss(
                    of: present, epoch: try store.newestEpoch(), connection)
            }
            logger.notice("the store begins anew from the database")
            try await store.close()
            try discard()
            self.store = try open(node)
        } else {
            self.store = store
        }
        _ = try await self.store.writeLocally(cost: 0) {
            try $0.setReplicationPosition(nowhere.data)
        }
        let position = try await Self.load(into: self.store, log, configuration.seal, connection)
        node.begin(at: position, in: self.store)
    }

    /// Returns the position of a store in a log; `nil` if the store is empty.
    ///
    /// - Throws: ``ClusterNode/Fault/otherCluster``, ``ClusterNode/Fault/hasOwnLog``.
    private static func position(
        of store: SQLiteStore, _ log: UInt128
    ) throws -> ClusterPosition? {
        guard let data = try store.replicationPosition() else {
            guard try store.head == 0 && store.catalogs().isEmpty else {
                throw ClusterNode.Fault.hasOwnLog
            }
            return nil
        }
        guard let position = ClusterPosition(data), position.log == log else {
            throw ClusterNode.Fault.otherCluster
        }
        return position
    }

    /// Fills an empty store with everything as of one batch.
    private static func load(
        into store: SQLiteStore, _ log: UInt128, _ seal: Seal, _ connection: ClusterConnection
    ) async throws -> ClusterPosition {
        try connection.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        let newest = try connection.rows(
            "SELECT number, id FROM timeline.batch ORDER BY number DESC LIMIT 1")
        guard let newest = newest.first else { throw PostgresError.unexpectedAnswer }
        let position = ClusterPosition(
            log: log, number: try newest.integer(0), id: try newest.uuid(1))
        try await loadLog(into: store, log, seal, connection)
        for kind in ItemChanges.Kind.allCases {
            var last = (app: "", key: "")
            while true {
                let rows = try connection.rows(
                    """
                    SELECT app, key, value FROM timeline.item i
                    WHERE kind = $1::bigint AND (app, key) > ($2, $3) AND NOT EXISTS (
                      SELECT 1 FROM timeline.gone g WHERE g.app = i.app AND g.batch > i.batch)
                    ORDER BY app, key LIMIT $4::bigint
                    """,
                    [
                        .integer(Int64(kind.rawValue)), .text(last.app), .text(last.key),
                        .integer(itemsAtOnce),
                    ], within: 60_000)
                var operations: [StoreOperation] = []
                for row in rows {
                    last = (try row.text(0), try row.text(1))
                    let key = ItemChanges.Key(kind: kind, app: last.app, key: last.key)
                    operations += try StoreOperation.list(
                        try seal.open(
                            try row.bytes(2), for: ClusterDatabase.place(of: key, in: log)))
                }
                try await apply(operations, to: store)
                if rows.count < Int(itemsAtOnce) { break }
            }
        }
        try connection.rows("COMMIT")
        // Last: a store without position has begun, and is of no use.
        _ = try await store.writeLocally(cost: 0) {
            try $0.setReplicationPosition(position.data)
        }
        return position
    }

    /// Repeats the log, from its floor.
    private static func loadLog(
        into store: SQLiteStore, _ log: UInt128, _ seal: Seal, _ connection: ClusterConnection
    ) async throws {
        var isFirst = true
        var last: Int64 = -1
        while true {
            let batches = try ClusterDatabase.batches(connection, after: last, log, within: 60_000)
            if batches.isEmpty { return }
            var operations: [StoreOperation] = []
            for batch in batches {
                last = batch.position.number
                // The first batch of a cluster has nothing.
                let body =
                    batch.body.isEmpty
                    ? [] : try seal.open(batch.body, for: ClusterDatabase.place(of: batch.position))
                let part = try StoreOperation.list(body).filter(\.isOfLog)
                if isFirst {
                    let floor = batch.head - UInt64(part.count(where: \.isAppend))
                    _ = try await store.writeLocally(cost: 0) { try $0.begin(at: floor) }
                    isFirst = false
                }
                operations += part
            }
            try await apply(operations, to: store)
        }
    }

    private static func apply(_ operations: [StoreOperation], to store: SQLiteStore) async throws {
        guard !operations.isEmpty else { return }
        _ = try await store.writeLocally(cost: 0) { transaction in
            for operation in operations { try transaction.repeatOperation(operation) }
        }
    }
}

extension StoreOperation {
    /// Whether a beginning store repeats it from the batches, and not from an item.
    var isOfLog: Bool {
        switch self {
        case .append, .appendPushAttempt, .prunePushAttempts, .prune, .deleteApp: true
        default: false
        }
    }

    fileprivate var isAppend: Bool { if case .append = self { true } else { false } }
}
