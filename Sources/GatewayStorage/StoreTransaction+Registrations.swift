import Foundation
import GRDB
import GatewayCore

extension StoreTransaction {
    /// Stores the registration of a client, replacing a previous one.
    ///
    /// - Parameters:
    ///   - attributes: The attributes that listings can filter by, with every value of every name.
    ///   - updatedAt: The time in ms since 1970.
    ///   - isSeen: Whether the client counts as seen then; a new one always does.
    ///   - seenAt: The time at which it was seen, if that is not `updatedAt`.
    /// - Returns: Whether the client had none before.
    /// - Throws: `StoreError.rejected` if a text contains a NUL; `unavailable` if the disk refuses.
    @discardableResult
    package mutating func putRegistration(
        app: String, client: String, payload: Data, attributes: [String: [String]],
        updatedAt: Int64, isSeen: Bool = true, seenAt: Int64? = nil
    ) throws -> Bool {
        let wanted = Set(
            attributes.flatMap { name, values in
                values.map { RegistrationAttribute(name: name, value: $0) }
            })
        try Self.requireNoNUL(in: app, client)
        for attribute in wanted {
            try Self.requireNoNUL(in: attribute.name, attribute.value)
        }
        let values = [
            StatementValue.integer(updatedAt), .bytes(payload), .text(app), .text(client),
        ]
        try run(.updateRegistration, values)
        let isNew = connection.changes == 0
        if isNew { try run(.insertRegistration, values) }
        var seenAt = seenAt ?? updatedAt
        if isSeen || isNew {
            try run(.putSeen, [.text(app), .text(client), .integer(seenAt)])
        } else {
            seenAt = try registration(app: app, client: client)?.seenAt ?? seenAt
        }
        try replaceAttributes(app: app, client: client, isNew: isNew, with: wanted)
        if isNew { stagedUsage.add(AppUsage(clients: 1), to: app) }
        record(
            .putRegistration(
                RegistrationRow(
                    key: RegistrationKey(app: app, client: client), payload: payload,
                    updatedAt: updatedAt, seenAt: seenAt),
                attributes: attributes, isSeen: isSeen))
        return isNew
    }

    /// Returns the registration of a client; `nil` if it has none.
    package mutating func registration(app: String, client: String) throws -> RegistrationRow? {
        var found: RegistrationRow?
        try run(.findRegistration, [.text(app), .text(client)]) { row in
            found = RegistrationRow(
                key: RegistrationKey(app: app, client: client), payload: row.bytes(0),
                updatedAt: row.integer(1), seenAt: row.integer(2))
        }
        return found
    }

    /// Removes the registration of a client.
    ///
    /// - Returns: Whether it had one.
    @discardableResult
    package mutating func deleteRegistration(app: String, client: String) throws -> Bool {
        try delete(RegistrationKey(app: app, client: client))
    }

    /// Records that clients were seen. Ignores clients without a registration, and does not move a
    /// later time back.
    ///
    /// - Parameter seen: The clients with the times, in ms since 1970.
    package mutating func touch(_ seen: some Collection<(key: RegistrationKey, at: Int64)>) throws {
        try writing { db in
            let statement = try db.cachedStatement(
                sql: """
                    UPDATE registration_seen SET seen_at = ?
                    WHERE app = ? AND client = ? AND seen_at < ?
                    """)
            for (key, at) in seen {
                try statement.execute(arguments: [at, key.app, key.client, at])
            }
        }
        for (key, at) in seen { record(.touch(key, at: at)) }
    }

    /// Removes registrations of clients that were last seen before `unseenSince`, those unseen for
    /// longest first, at most `limit` of them.
    ///
    /// - Parameter unseenSince: The time in ms since 1970.
    /// - Returns: The removed clients; fewer than `limit` means that none is left.
    package mutating func deleteRegistrations(
        unseenSince: Int64, limit: Int
    ) throws -> [RegistrationKey] {
        try deleteRegistrations(
            sql: """
                SELECT app, client FROM registration_seen
                WHERE seen_at < ? ORDER BY seen_at LIMIT ?
                """,
            arguments: [unseenSince, max(limit, 0)])
    }

    /// Removes registrations with an attribute value, at most `limit` of them.
    ///
    /// - Returns: The removed clients; fewer than `limit` means that none is left.
    package mutating func deleteRegistrations(
        app: String, attribute: (name: String, value: String), limit: Int
    ) throws -> [RegistrationKey] {
        try deleteRegistrations(
            sql: """
                SELECT app, client FROM registration_attribute
                WHERE app = ? AND name = ? AND value = ? ORDER BY client LIMIT ?
                """,
            arguments: [app, attribute.name, attribute.value, max(limit, 0)])
    }

    private mutating func deleteRegistrations(
        sql: String, arguments: StatementArguments
    ) throws -> [RegistrationKey] {
        let keys = try reading { db in
            try Row.fetchAll(db.cachedStatement(sql: sql), arguments: arguments)
                .map { RegistrationKey(app: $0[0], client: $0[1]) }
        }
        for key in keys { try delete(key) }
        return keys
    }

    @discardableResult
    private mutating func delete(_ key: RegistrationKey) throws -> Bool {
        try replaceAttributes(app: key.app, client: key.client, isNew: false, with: [])
        let existed = try writing { db in
            try db.cachedStatement(
                sql: "DELETE FROM registration_seen WHERE app = ? AND client = ?"
            ).execute(arguments: [key.app, key.client])
            try db.cachedStatement(sql: "DELETE FROM registration WHERE app = ? AND client = ?")
                .execute(arguments: [key.app, key.client])
            return db.changesCount > 0
        }
        if existed {
            stagedUsage.add(AppUsage(clients: -1), to: key.app)
            record(.deleteRegistration(key))
        }
        return existed
    }

    /// Writes only differences, because a client that registers again usually keeps its attributes.
    private mutating func replaceAttributes(
        app: String, client: String, isNew: Bool, with wanted: Set<RegistrationAttribute>
    ) throws {
        var present: Set<RegistrationAttribute> = []
        if !isNew {
            try run(.listAttributes, [.text(app), .text(client)]) { row in
                present.insert(RegistrationAttribute(name: row.text(0), value: row.text(1)))
            }
        }
        for attribute in present.subtracting(wanted) {
            try writing { db in
                try db.cachedStatement(
                    sql: """
                        DELETE FROM registration_attribute
                        WHERE app = ? AND name = ? AND value = ? AND client = ?
                        """
                ).execute(arguments: [app, attribute.name, attribute.value, client])
            }
        }
        for attribute in wanted.subtracting(present) {
            try run(
                .putAttribute,
                [.text(app), .text(attribute.name), .text(attribute.value), .text(client)])
        }
    }

    /// Removes everything of an app except its rows of the log: catalogs, registrations, push
    /// states of its clients, and push attempts. The rows are removed when they are old enough.
    ///
    /// - Returns: The number of registered clients.
    package mutating func deleteApp(_ app: String) throws -> Int {
        let (clients, catalogBytes) = try writing { db in
            let catalogBytes = try Int.fetchOne(
                db.cachedStatement(sql: "SELECT sum(length(payload)) FROM catalog WHERE app = ?"),
                arguments: [app])
            try db.cachedStatement(sql: "DELETE FROM registration WHERE app = ?")
                .execute(arguments: [app])
            let clients = db.changesCount
            for table in [
                "registration_seen", "registration_attribute", "push_client", "push_attempt",
                "catalog",
            ] {
                try db.cachedStatement(sql: "DELETE FROM \(table) WHERE app = ?")
                    .execute(arguments: [app])
            }
            return (clients, catalogBytes ?? 0)
        }
        stagedUsage.add(AppUsage(clients: -clients, logBytes: -catalogBytes), to: app)
        record(.deleteApp(app))
        return clients
    }
}

private struct RegistrationAttribute: Hashable {
    let name: String
    let value: String
}
