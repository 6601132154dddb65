import Foundation

/// Makes what a store writes durable for all stores of a cluster, before it is in force here.
///
/// One store at a time leads; the others repeat its operations with
/// ``SQLiteStore/writeLocally(cost:_:)``, so that all are equal. Called on the writer's thread.
package protocol StoreReplication: Sendable {
    /// The keys of a new store, which all stores share.
    var secrets: StoreSecrets { get }

    /// The reason why this store may not write now; `nil` while it leads.
    var refusal: StoreError? { get }

    /// Appends the operations of a transaction to the log of the cluster; returns when they are
    /// durable. It may block.
    ///
    /// - Parameters:
    ///   - operations: What the transaction did, in order.
    ///   - head: The last sequence with it.
    /// - Returns: The position in the log of the cluster, which the store records with them.
    /// - Throws: `StoreError.notLeading` if nothing was appended, `unconfirmed` if that is unknown.
    func append(_ operations: [StoreOperation], head: UInt64) throws(StoreError) -> Data

    /// The store did not commit what was appended last: it must repeat it like the other stores.
    func diverged()
}

/// The keys of a store, which it keeps.
package struct StoreSecrets: Sendable {
    package static let byteCount = SQLiteStore.secretBytes + EventFingerprint.keyBytes

    /// See ``SQLiteStore/secret``.
    let store: Data
    /// The key of the fingerprints that index events.
    let events: Data

    /// Divides ``byteCount`` random bytes.
    package init(_ bytes: [UInt8]) {
        store = Data(bytes.prefix(SQLiteStore.secretBytes))
        events = Data(bytes.dropFirst(SQLiteStore.secretBytes))
    }
}

extension SQLiteStore {
    /// The database key of the position in the log of the cluster.
    static let replicationPosition = "replication position"

    /// Returns the position in the log of the cluster up to which this store has repeated it; `nil`
    /// if it has nothing of it.
    package func replicationPosition() throws -> Data? { try meta(Self.replicationPosition) }
}

extension StoreTransaction {
    /// Repeats another store's transaction, if this store is at the position before it.
    ///
    /// - Parameters:
    ///   - position: The position of the store after the transaction.
    ///   - previous: The position before it.
    /// - Returns: Whether it was at `previous`; if not, it is ahead of that or lacks more.
    package mutating func repeatOperations(
        _ operations: [StoreOperation], to position: Data, from previous: Data
    ) throws -> Bool {
        guard try meta(SQLiteStore.replicationPosition) == previous else { return false }
        for operation in operations { try repeatOperation(operation) }
        try setReplicationPosition(position)
        return true
    }

    /// Records the position in the log of the cluster that the store has with this transaction.
    package mutating func setReplicationPosition(_ position: Data) throws {
        try setMeta(SQLiteStore.replicationPosition, position)
    }
}
