import Foundation
import GRDB

extension SQLiteStore {
    /// What is kept of every client that is pushed to, some at a time; for the start.
    package func pushClients(
        batch: Int = 1_000, _ body: (_ rows: [PushClientRow]) throws -> Void
    ) throws {
        var last = RegistrationKey(app: "", client: "")
        while true {
            let after = last
            let page = try whileOpen {
                try database.read {
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
            }
            guard let end = page.rows.last else { return }
            last = end.key
            try body(page.rows)
        }
    }

    /// The provider tokens there are.
    package func providerTokens() throws -> [ProviderTokenRow] {
        try whileOpen {
            try database.read {
                try Row.fetchAll($0, sql: "SELECT issuer, issued_at, token FROM provider_token")
                    .map { ProviderTokenRow(issuer: $0[0], issuedAt: $0[1], token: $0[2]) }
            }
        }
    }

    /// Attempts, the newest first.
    ///
    /// - Parameters:
    ///   - key: Those for one client only.
    ///   - before: Those with lower numbers only.
    ///   - limit: At most so many, 1...1,000.
    package func pushAttempts(
        of key: RegistrationKey? = nil, before: Int64? = nil, limit: Int
    ) async throws -> [PushAttemptRow] {
        let columns =
            "number, at, app, client, channel, outcome, reason, reference, milliseconds"
        var sql = "SELECT \(columns) FROM push_attempt WHERE number < ?"
        var arguments: StatementArguments = [before ?? .max]
        if let key {
            sql += " AND app = ? AND client = ?"
            arguments += [key.app, key.client]
        }
        sql += " ORDER BY number DESC LIMIT ?"
        arguments += [min(max(limit, 1), 1_000)]
        return try await reading { [sql, arguments] db in
            try Row.fetchAll(db.cachedStatement(sql: sql), arguments: arguments)
                .map(PushAttemptRow.init)
        }
    }
}

extension PushClientRow {
    /// Columns: app, client, payload.
    init(_ row: Row) {
        self.init(key: RegistrationKey(app: row[0], client: row[1]), payload: row[2])
    }
}

extension PushAttemptRow {
    /// Columns: number, end, app, client, channel, outcome, reason, reference, duration.
    init(_ row: Row) {
        self.init(
            number: row[0], at: row[1], key: RegistrationKey(app: row[2], client: row[3]),
            channel: row[4], outcome: row[5], reason: row[6], reference: row[7],
            milliseconds: row[8])
    }
}
