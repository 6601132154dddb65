import Foundation
import GRDB

extension SQLiteStore {
    /// Reads the push state of all clients, in batches; for the start.
    package func pushClients(
        batch: Int = 1_000, _ body: (_ rows: [PushClientRow]) throws -> Void
    ) throws {
        var last = RegistrationKey(app: "", client: "")
        while true {
            let after = last
            let page = try readNow {
                try bounded(
                    Row.fetchCursor(
                        $0.cachedStatement(
                            sql: """
                                SELECT app, client, payload FROM push_client
                                WHERE (app, client) > (?, ?) ORDER BY app, client LIMIT ?
                                """),
                        arguments: [after.app, after.client, max(batch, 1)]),
                    PushClientRow.init, bytes: { $0.payload?.count ?? 0 })
            }
            guard let end = page.rows.last else { return }
            last = end.key
            try body(page.rows)
        }
    }

    /// The database key of the sequence up to which clients are owed only what their states say.
    static let pushesClear = "pushes clear"

    /// Returns the sequence up to which clients are owed only what their push states say; 0 if none
    /// was stored. For the start.
    package func pushesClearUpTo() throws -> UInt64 {
        try meta(Self.pushesClear).flatMap { UInt64(String(decoding: $0, as: UTF8.self)) } ?? 0
    }

    package func providerTokens() async throws -> [ProviderTokenRow] {
        try await reading {
            try Row.fetchAll($0, sql: "SELECT issuer, issued_at, token FROM provider_token")
                .map { ProviderTokenRow(issuer: $0[0], issuedAt: $0[1], token: $0[2]) }
        }
    }

    /// Returns attempts of an app, the newest first. Request one more than needed to find out
    /// whether there are more.
    ///
    /// - Parameter limit: The maximum number, 1...1,001.
    package func pushAttempts(
        _ query: PushAttemptQuery, limit: Int
    ) async throws -> [PushAttemptRow] {
        var conditions = ["app = ?"]
        var arguments: StatementArguments = [query.app]
        for (column, value) in [
            ("client", query.client), ("channel", query.channel), ("outcome", query.outcome),
        ] {
            guard let value else { continue }
            conditions.append("\(column) = ?")
            arguments += [value]
        }
        if let before = query.before {
            conditions.append("number < ?")
            arguments += [before]
        }
        let sql = """
            SELECT number, at, app, client, channel, outcome, reason, reference, milliseconds,
            sequence, cause FROM push_attempt WHERE \(conditions.joined(separator: " AND "))
            ORDER BY number DESC LIMIT ?
            """
        arguments += [min(max(limit, 1), 1_001)]
        return try await reading { [arguments] db in
            try Row.fetchAll(db.cachedStatement(sql: sql), arguments: arguments)
                .map(PushAttemptRow.init)
        }
    }
}

extension PushClientRow {
    /// Creates a value from the columns app, client, payload.
    init(_ row: Row) {
        self.init(key: RegistrationKey(app: row[0], client: row[1]), payload: row[2])
    }
}

extension PushAttemptRow {
    /// Creates a value from the columns number, end, app, client, channel, outcome, reason,
    /// reference, duration, sequence, cause.
    init(_ row: Row) {
        self.init(
            number: row[0], at: row[1], key: RegistrationKey(app: row[2], client: row[3]),
            channel: row[4], outcome: row[5], reason: row[6], reference: row[7],
            milliseconds: row[8], sequence: (row[9] as Int64?).flatMap { UInt64(exactly: $0) },
            cause: row[10])
    }
}
