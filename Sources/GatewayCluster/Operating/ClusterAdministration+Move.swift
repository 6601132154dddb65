import Foundation
import GatewayStorage

/// The way from one gateway to several.
extension ClusterAdministration {
    /// The result of ``move(from:_:attributes:report:)``.
    package struct Moved: Sendable {
        /// The number of operations that make a store.
        package let rows: Int
        /// The last sequence of the log.
        package let head: UInt64
    }

    /// Copies the store in a data directory, which nobody has open, to a cluster that no node has
    /// used, as a whole or not at all. Afterwards the directory is that of a node.
    ///
    /// - Parameters:
    ///   - attributes: Returns the attributes of a registration.
    ///   - report: Called with the number of operations so far.
    /// - Throws: `StoreError`, `PostgresError`, ``Seal/Fault``; ``Fault`` if the cluster was used.
    package func move(
        from directory: String, _ seal: Seal,
        attributes: (RegistrationRow) throws -> [String: [String]],
        report: (_ rows: Int) -> Void
    ) async throws -> Moved {
        _ = try prepare(seal)
        let store = try SQLiteStore(directory: directory, opening: .existing)
        let moved: (position: ClusterPosition, rows: Int)
        do {
            try connection.execute("BEGIN")
            moved = try copy(store, seal, attributes: attributes, report: report)
            try connection.execute("COMMIT")
        } catch {
            try? connection.execute("ROLLBACK")
            try? await store.close()
            throw error
        }
        _ = try await store.writeLocally(cost: 0) {
            try $0.setReplicationPosition(moved.position.data)
        }
        let head = store.head
        try await store.close()
        return Moved(rows: moved.rows, head: head)
    }

    private func copy(
        _ store: SQLiteStore, _ seal: Seal,
        attributes: (RegistrationRow) throws -> [String: [String]], report: (Int) -> Void
    ) throws -> (ClusterPosition, Int) {
        // No node begins meanwhile.
        try connection.execute("LOCK TABLE timeline.node, timeline.leader, timeline.batch")
        guard try connection.rows("SELECT 1 FROM timeline.node LIMIT 1").isEmpty else {
            throw Fault(
                description: "to: nodes have used this cluster: move to one that `cluster prepare`"
                    + " made a moment ago")
        }
        try connection.execute("TRUNCATE timeline.batch, timeline.item, timeline.gone")
        try storeSecrets(try store.secretBytes(), seal)
        let first = try connection.rows(
            """
            INSERT INTO timeline.batch VALUES (0, gen_random_uuid(), $1, '')
            RETURNING number, id, (SELECT log_id FROM timeline.cluster)
            """, [.integer(Int64(bitPattern: store.floor))]
        ).first
        guard let first else { throw PostgresError.unexpectedAnswer }
        var position = ClusterPosition(
            log: try first.uuid(2), number: try first.integer(0), id: try first.uuid(1))
        var rows = 0
        try store.operations(attributes: attributes) { operations, head in
            guard !operations.isEmpty else { return }
            position = position.next()
            var body: [UInt8] = []
            for operation in operations { operation.append(to: &body) }
            try connection.rows(
                "INSERT INTO timeline.batch VALUES ($1, $2, $3, $4)",
                [
                    .integer(position.number), .uuid(position.id),
                    .integer(Int64(bitPattern: head)),
                    .bytes(try seal.seal(body, for: ClusterDatabase.place(of: position))),
                ])
            try connection.rows(
                "INSERT INTO timeline.item (kind, app, key, value) SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::bytea[])",
                try ClusterDatabase.items(ItemChanges(operations), in: position.log, seal))
            rows += operations.count
            report(rows)
        }
        return (position, rows)
    }
}
