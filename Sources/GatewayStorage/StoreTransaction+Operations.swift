import Foundation

extension StoreTransaction {
    /// Repeats an operation of another store, to which this one was equal before the operation.
    ///
    /// - Throws: `StoreError.corrupt` if the operation does not continue this store's log;
    ///   `unavailable` if the disk refuses.
    package mutating func repeatOperation(_ operation: StoreOperation) throws {
        switch operation {
        case .append(let row):
            guard row.sequence == nextSequence else {
                throw StoreError.corrupt(
                    reason: "the log goes on at \(row.sequence) instead of \(nextSequence)")
            }
            try insert(row)
        case .putCatalog(let row):
            try putCatalog(app: row.app, sequence: row.sequence, payload: row.payload)
        case .deleteApp(let app): _ = try deleteApp(app)
        case .putRegistration(let row, let attributes, let isSeen):
            try putRegistration(
                app: row.key.app, client: row.key.client, payload: row.payload,
                attributes: attributes, updatedAt: row.updatedAt, isSeen: isSeen,
                seenAt: row.seenAt)
        case .deleteRegistration(let key):
            try deleteRegistration(app: key.app, client: key.client)
        case .touch(let key, let at): try touch([(key: key, at: at)])
        case .putPushClient(let row): try putPushClients([row])
        case .appendPushAttempt(let row): try appendPushAttempts([row])
        case .prunePushAttempts(let endedBefore, let keepRows, let limit):
            _ = try prunePushAttempts(
                endedBefore: endedBefore, keepRows: keepRows, limit: Int(clamping: limit))
        case .prune(let sequence):
            _ = try prune(
                acceptedBefore: .min, keepRows: nextSequence - 1 - sequence, limit: .max)
        case .putProviderToken(let row): try putProviderToken(row)
        case .openEpoch(let row, let voidsOlder, let kept):
            try openEpoch(
                id: row.id, atLeast: row.ordinal, at: row.openedAtSequence, now: row.openedAt,
                voidsOlder: voidsOlder, kept: Int(clamping: kept))
        case .setMeta(let key, let value): try setMeta(key, value)
        }
    }
}
