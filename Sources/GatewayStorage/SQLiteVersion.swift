import GRDBSQLite

/// The version of the loaded SQLite, such as `3.40.1`.
package var sqliteVersion: String {
    // Sound: SQLite returns a static text.
    String(cString: sqlite3_libversion())
}
