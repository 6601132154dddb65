import GRDBSQLite

/// The version of the SQLite that is loaded, such as `3.40.1`.
package var sqliteVersion: String {
    // Sound: SQLite answers with a constant of its own.
    String(cString: sqlite3_libversion())
}
