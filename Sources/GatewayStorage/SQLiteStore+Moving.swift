import Foundation
import GRDB

/// A store that a cluster goes on from.
extension SQLiteStore {
    /// Both keys, one behind the other: see ``StoreSecrets``.
    package func secretBytes() throws -> [UInt8] {
        try readNow { db in
            let row = try Row.fetchOne(db, sql: "SELECT secret, event_hash_key FROM state")
            let keys: [Data] = [row?[0] ?? Data(), row?[1] ?? Data()]
            return keys.flatMap { Array($0) }
        }
    }

    /// Calls `body` with the operations that turn an empty store, whose log begins at this floor,
    /// into an equal one.
    ///
    /// - Parameters:
    ///   - attributes: Returns the attributes of a registration.
    ///   - body: Called with each portion, and the last sequence up to its end.
    package func operations(
        attributes: (RegistrationRow) throws -> [String: [String]],
        _ body: (_ operations: [StoreOperation], _ head: UInt64) throws -> Void
    ) throws {
        try replay(after: floor, batch: 1_000) { rows in
            try body(rows.map { .append($0) }, rows.last?.sequence ?? floor)
        }
        try body(try catalogs().map { .putCatalog($0) }, head)
        try registrations { rows in
            let portion = try rows.map { row in
                StoreOperation.putRegistration(
                    row, attributes: try attributes(row), isSeen: false)
            }
            try body(portion, head)
        }
        try pushClients { rows in try body(rows.map { .putPushClient($0) }, head) }
        let (attempts, tokens, meta) = try readNow { db in
            (
                try Row.fetchAll(
                    db,
                    sql: """
                        SELECT number, at, app, client, channel, outcome, reason, reference,
                        milliseconds, sequence, cause FROM push_attempt ORDER BY number
                        """
                ).map(PushAttemptRow.init),
                try Row.fetchAll(db, sql: "SELECT issuer, issued_at, token FROM provider_token")
                    .map { ProviderTokenRow(issuer: $0[0], issuedAt: $0[1], token: $0[2]) },
                // One that is not there, too: an epoch may set it.
                try [Self.pushesClear, Self.voidPositions].map { key in
                    StoreOperation.setMeta(
                        key,
                        try Data.fetchOne(
                            db, sql: "SELECT value FROM meta WHERE key = ?", arguments: [key]))
                }
            )
        }
        for start in stride(from: 0, to: attempts.count, by: 1_000) {
            let portion = attempts[start..<min(start + 1_000, attempts.count)]
            try body(portion.map { .appendPushAttempt($0) }, head)
        }
        let epochs = try epochs()
        let opened = epochs.enumerated().map { index, epoch in
            StoreOperation.openEpoch(
                epoch, voidsOlder: index > 0 && epochs[index - 1].isVoid,
                kept: Int64(self.configuration.epochsMax))
        }
        try body(tokens.map { .putProviderToken($0) } + opened + meta, head)
    }
}
