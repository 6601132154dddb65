import GatewayPostgres
import WidgetModel

/// An operator's work on the database of a cluster. No node that starts does any of it.
package struct ClusterAdministration {
    let connection: PostgresAdministration
    /// The name of the option with the database, for faults.
    let option: String
    private let user: String

    /// Connects to the database.
    ///
    /// - Parameters:
    ///   - database: A connection string, as ``PostgresAddress`` reads it.
    ///   - option: The name of the option with the database, for faults.
    /// - Throws: `Faults` at `option`.
    package init(database: String, option: String = "database") throws {
        self.option = option
        let address: PostgresAddress
        do {
            address = try PostgresAddress(database)
        } catch {
            throw Faults(option, "\(error)")
        }
        user = address.user
        connection = try Self.naming(option) {
            try PostgresAdministration(address)
        }
    }

    /// Translates the server's error to a fault at `place`.
    static func naming<Value>(
        _ place: String, _ body: () throws -> Value
    ) throws -> Value {
        do {
            return try body()
        } catch let error as PostgresError {
            // The library ends its messages with a line feed.
            let text = "\(error)".split(separator: "\n").joined(separator: "; ")
            throw Faults(place, text)
        }
    }

    package struct Preparation: Sendable, Equatable {
        /// Whether roles or their rights were missing and were created.
        package let createdRoles: Bool
        /// The version of the schema before; 0 if there was none.
        package let versionBefore: Int64
        /// The version of the schema now.
        package let version: Int64
        package let log: String
    }

    /// Creates the roles and the schema, or migrates it; repeatable. All of the schema is created or
    /// nothing.
    ///
    /// - Parameter slice: The sequences in a slice of a new log.
    /// - Throws: `Faults` at `database` or `slice`.
    package func prepare(slice: Int64? = nil) throws -> Preparation {
        let settings = try Self.settings(slice: slice)
        let needsRoles = try Self.naming(option) {
            try !ClusterSchema.hasRoles(connection)
        }
        if needsRoles { try createRoles() }
        try requireOwner()
        return try Self.naming(option) {
            let before = try ClusterSchema.presentVersion(connection)
            try ClusterSchema.migrate(connection, settings)
            let row = try connection.rows("SELECT log_id::text FROM tg.log_identity").first
            return Preparation(
                createdRoles: needsRoles, versionBefore: before, version: ClusterSchema.version,
                log: try row?.text(0) ?? "")
        }
    }

    private static func settings(slice: Int64?) throws -> ClusterSchema.Settings {
        var settings = ClusterSchema.Settings()
        guard let slice else { return settings }
        guard slice >= settings.slice else {
            throw Faults("slice", "must be at least \(settings.slice)")
        }
        settings.slice = slice
        return settings
    }

    private func createRoles() throws {
        do {
            try ClusterSchema.createRoles(connection)
        } catch PostgresError.schema {
            throw Faults(
                option,
                "\(user) may not create the roles tg_owner, tg_node, tg_observer and tg_operator; run"
                    + " this once as a role with CREATEROLE that owns the database, afterwards as a"
                    + " member of tg_operator")
        } catch {
            throw Faults(option, "\(error)")
        }
    }

    /// Checks that the schema is that of this program.
    func requireVersion() throws {
        let version = try Self.naming(option) {
            try ClusterSchema.presentVersion(connection)
        }
        guard version == ClusterSchema.version else {
            throw Faults(
                option,
                "the schema has version \(version), this program needs \(ClusterSchema.version); run"
                    + " `timeline-gateway cluster prepare` first, or use a newer program")
        }
    }

    /// Checks that the login may act as the owner of the schema.
    func requireOwner() throws {
        let isOwner = try Self.naming(option) {
            try connection.rows(
                "SELECT coalesce(pg_has_role(to_regrole('tg_owner'), 'MEMBER'), false)"
            ).first?.boolean(0) == true
        }
        guard isOwner else {
            throw Faults(
                option,
                "\(user) is not a member of tg_operator; run as another role: GRANT tg_operator TO"
                    + " \(user)")
        }
    }
}
