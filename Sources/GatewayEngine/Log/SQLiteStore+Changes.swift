import GatewayStorage

extension SQLiteStore {
    /// Returns changes of an app, the latest first.
    ///
    /// - Parameters:
    ///   - before: The upper limit of their sequences, exclusive.
    ///   - after: The lower limit of their sequences, exclusive.
    ///   - limit: The maximum number of rows; fewer if they would be too large together.
    /// - Returns: The changes, and the sequence before which to continue; `nil` at the beginning of
    ///   the log.
    package func changes(
        app: String, before: UInt64, after: UInt64, limit: Int
    ) async throws -> (rows: [LogRow], next: UInt64?) {
        try await changes(app: app, before: before, after: after, limit: limit, scanMax: 50_000)
    }
}
