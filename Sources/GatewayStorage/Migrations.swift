import Foundation
import GRDB

/// The schema as a list of migrations. Migrations are only ever appended, because existing
/// databases have run the previous ones.
enum Migrations {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 log", foreignKeyChecks: .immediate, migrate: createLog)
        migrator.registerMigration(
            "2 registrations", foreignKeyChecks: .immediate, migrate: createRegistrations)
        migrator.registerMigration("3 push", foreignKeyChecks: .immediate, migrate: createPush)
        migrator.registerMigration("4 attempts of an app", foreignKeyChecks: .immediate) { db in
            try db.execute(sql: "CREATE INDEX push_attempt_app ON push_attempt (app, number)")
        }
        // NULL in attempts from before.
        migrator.registerMigration("5 change of an attempt", foreignKeyChecks: .immediate) { db in
            try db.execute(sql: "ALTER TABLE push_attempt ADD COLUMN sequence INTEGER")
        }
        migrator.registerMigration("6 cause of an attempt", foreignKeyChecks: .immediate) { db in
            try db.execute(sql: "ALTER TABLE push_attempt ADD COLUMN cause TEXT")
        }
        return migrator
    }

    /// Rejects a database that must not be modified at all, not even by an older migration.
    ///
    /// - Throws: `StoreError.newerVersion` if it has migrations that this version does not know.
    static func check(_ reader: any DatabaseReader) throws {
        if try reader.read(migrator.hasBeenSuperseded) { throw StoreError.newerVersion }
    }

    /// Returns whether a database has run every migration.
    static func isComplete(_ db: Database) throws -> Bool {
        try migrator.hasCompletedMigrations(db)
    }

    /// Returns whether a database has none of the tables.
    static func isNew(_ db: Database) throws -> Bool {
        try migrator.appliedIdentifiers(db).isEmpty
    }

    /// Creates strict tables: a value of the wrong type fails when it is written, not when it is
    /// read.
    @Sendable private static func createLog(_ db: Database) throws {
        // The payload is the last column, so that a scan for sequences and times does not read its
        // pages. Empty payloads are stored as NULL.
        try db.execute(
            sql: """
                CREATE TABLE log (
                    sequence INTEGER PRIMARY KEY,
                    app TEXT NOT NULL,
                    type INTEGER NOT NULL,
                    source TEXT,
                    event_id TEXT,
                    event_key INTEGER,
                    accepted_at INTEGER NOT NULL,
                    payload BLOB
                ) STRICT;
                CREATE INDEX log_event ON log (event_key) WHERE event_key IS NOT NULL;
                CREATE TABLE catalog (
                    app TEXT NOT NULL,
                    sequence INTEGER NOT NULL,
                    payload BLOB,
                    PRIMARY KEY (app, sequence)
                ) STRICT;
                CREATE TABLE epoch (
                    ordinal INTEGER PRIMARY KEY,
                    id INTEGER NOT NULL,
                    opened_at_sequence INTEGER NOT NULL,
                    voided INTEGER NOT NULL,
                    opened_at INTEGER NOT NULL
                ) STRICT;
                CREATE TABLE meta (
                    key TEXT PRIMARY KEY,
                    value BLOB
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE state (
                    one INTEGER PRIMARY KEY CHECK (one = 1),
                    floor INTEGER NOT NULL,
                    secret BLOB NOT NULL,
                    event_hash_key BLOB NOT NULL
                ) STRICT;
                """)
        try db.execute(
            sql: "INSERT INTO state (one, floor, secret, event_hash_key) VALUES (1, 0, ?, ?)",
            arguments: [
                randomBytes(SQLiteStore.secretBytes), randomBytes(EventFingerprint.keyBytes),
            ])
    }

    private static func randomBytes(_ count: Int) -> Data {
        var generator = SystemRandomNumberGenerator()
        return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    @Sendable private static func createRegistrations(_ db: Database) throws {
        // The time at which a client was last seen changes far more often than its registration, so
        // it is in a small separate table; updating it does not rewrite the payload.
        try db.execute(
            sql: """
                CREATE TABLE registration (
                    app TEXT NOT NULL,
                    client TEXT NOT NULL,
                    updated_at INTEGER NOT NULL,
                    payload BLOB,
                    PRIMARY KEY (app, client)
                ) STRICT;
                CREATE TABLE registration_seen (
                    app TEXT NOT NULL,
                    client TEXT NOT NULL,
                    seen_at INTEGER NOT NULL,
                    PRIMARY KEY (app, client)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX registration_seen_at ON registration_seen (seen_at);
                CREATE TABLE registration_attribute (
                    app TEXT NOT NULL,
                    name TEXT NOT NULL,
                    value TEXT NOT NULL,
                    client TEXT NOT NULL,
                    PRIMARY KEY (app, name, value, client)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX registration_attribute_client
                    ON registration_attribute (app, client);
                """)
    }

    @Sendable private static func createPush(_ db: Database) throws {
        // Attempts are numbered in the order in which they ended; the oldest are removed first.
        try db.execute(
            sql: """
                CREATE TABLE push_client (
                    app TEXT NOT NULL,
                    client TEXT NOT NULL,
                    payload BLOB NOT NULL,
                    PRIMARY KEY (app, client)
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE push_attempt (
                    number INTEGER PRIMARY KEY,
                    at INTEGER NOT NULL,
                    app TEXT NOT NULL,
                    client TEXT NOT NULL,
                    channel TEXT NOT NULL,
                    outcome TEXT NOT NULL,
                    reason TEXT,
                    reference TEXT,
                    milliseconds INTEGER NOT NULL
                ) STRICT;
                CREATE INDEX push_attempt_client ON push_attempt (app, client, number);
                CREATE TABLE provider_token (
                    issuer TEXT PRIMARY KEY,
                    issued_at INTEGER NOT NULL,
                    token TEXT NOT NULL
                ) STRICT, WITHOUT ROWID;
                """)
    }
}
