import Foundation
import GatewayCore
import GatewayDocuments
import GatewayStorage
import WidgetModel

/// The log and the registrations, as the engine writes them in its store.
///
/// - A write is stored whole or not at all. A method returns when its write is durable and handed to
///   every event loop of this gateway, and throws if nothing was written or the outcome is unknown.
/// - Sequences have no gaps. Event loops receive the entries in the order of their sequences, and none
///   that could still be lost.
/// - A write that was decided by a catalog or from a registration that is not in force any more writes
///   nothing and says so; the caller decides again.
/// - An event is known by the bytes of source and id, as long as the log keeps it and its app is not
///   removed.
package final class EngineLog: Sendable {
    let store: SQLiteStore
    let writer: LogWriter
    package let jobs: LogJobs
    private let leader: (any LogLeader)?

    /// - Parameter leader: `nil` if no other gateway shares the log.
    init(
        store: SQLiteStore, writer: LogWriter, jobs: LogJobs,
        leader: (any LogLeader)? = nil
    ) {
        self.store = store
        self.writer = writer
        self.jobs = jobs
        self.leader = leader
    }

    /// The highest sequence that is durable.
    package var head: UInt64 { store.head }

    /// Returns the head once this gateway has everything that any gateway of the log had answered for
    /// when it was called.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if that cannot be known now.
    package func barrier() async throws -> UInt64 {
        try await leader?.barrier()
        return store.head
    }

    // MARK: Changes, catalogs and apps

    /// Appends the events of a post that the log does not contain.
    ///
    /// - Returns: `nil` if another catalog is in force than the one that decided the post.
    /// - Throws: ``EngineError/unknownApp``; ``EngineError/eventIDReused(_:)`` if the log contains an
    ///   event of the same source and id with other data; ``EngineError/invalid(_:)`` if an event
    ///   that the log does not contain invalidates too much; ``EngineError/quota(_:)``.
    package func append(
        _ post: DecidedPost, to app: String, trace: PostTrace?
    ) async throws -> PostOutcome? {
        try await writer.write(for: .app(app), cost: post.memoryBytes) {
            try self.jobs.post(post, to: app, trace: trace, &$0)
        }
    }

    /// Appends a start that the log does not contain.
    ///
    /// - Parameter isFull: Whether as many starts of the app as are allowed may still be pushed.
    /// - Returns: `nil` if its channels are missing.
    /// - Throws: ``EngineError/unknownApp``; ``EngineError/eventIDReused(_:)`` for another start
    ///   with its id; ``EngineError/invalid(_:)`` for an undeclared type; ``EngineError/quota(_:)``.
    package func append(
        _ start: ActivityStart, to app: String, isFull: Bool = false
    ) async throws -> StartTaken? {
        try await writer.write(for: .app(app), cost: 8_192) {
            try self.jobs.start(start, of: app, isFull: isFull, &$0)
        }
    }

    /// Appends an operator's reload; returns its sequence.
    ///
    /// - Throws: ``EngineError/unknownApp`` and ``EngineError/unknownClient``;
    ///   ``EngineError/invalid(_:)`` for a kind that is not declared.
    package func append(
        _ scope: ReloadScope, to app: String, trace: ReloadTrace?
    ) async throws -> UInt64 {
        try await writer.write(for: .app(app), cost: 256) {
            try self.jobs.reload(scope, of: app, trace: trace, &$0)
        }
    }

    /// Puts a catalog in force. Writes nothing if its document is in force already.
    ///
    /// - Returns: `nil` if the catalog that it was compiled to replace is not in force.
    /// - Throws: ``EngineError/preconditionFailed``; ``EngineError/quota(_:)``.
    package func put(_ upload: CatalogUpload) async throws -> CatalogOutcome? {
        try await writer.write(for: .app(upload.app), cost: 2 * upload.body.count + 256) {
            try self.jobs.put(upload, &$0)
        }
    }

    /// Removes an app with its catalog and clients. Other writes wait while the clients are removed.
    ///
    /// - Returns: The sequence at which the app ended, and the number of its clients.
    /// - Throws: ``EngineError/unknownApp`` for an app without a catalog.
    package func removeApp(_ app: String) async throws -> (sequence: UInt64, clients: Int) {
        try await writer.write(for: .app(app), cost: 4096) { try self.jobs.removeApp(app, &$0) }
    }

    // MARK: Registrations

    /// Returns a registration as it is stored; `nil` if there is none. Reads without the writer's
    /// thread.
    package func registration(_ key: ClientKey) async throws -> Data? {
        // Most clients that register are new; the writer checks again.
        guard jobs.registry.record(key) != nil else { return nil }
        do {
            return try await store.registration(app: key.app, client: key.client)?.payload
        } catch let error as StoreError {
            throw EngineError.store(error)
        }
    }

    /// Stores a registration in place of the one that it was made from: returns when every event
    /// loop of this gateway has applied it.
    ///
    /// - Throws: ``EngineError/quota(_:)`` if the app has the maximum number of clients.
    package func put(_ update: RegistrationUpdate) async throws -> RegistrationUpdate.Outcome {
        let bytes =
            update.replacement.payload.count + (update.base.payload?.count ?? 0)
        let stored = try await writer.write(for: .app(update.key.app), cost: 1_024 + bytes) {
            try self.jobs.put(update, &$0)
        }
        switch stored {
        case .stored(let isNew, let receipts):
            return .stored(isNew: isNew, position: await receipts.lowestPosition)
        case .outdated(let current): return .outdated(current)
        }
    }

    /// Removes a client; returns whether it was registered.
    package func remove(_ key: ClientKey) async throws -> Bool {
        try await writer.write(for: .app(key.app), cost: 256) {
            let isRemoved = try $0.deleteRegistration(app: key.app, client: key.client)
            return self.jobs.removed(isRemoved ? [key] : [], &$0) > 0
        }
    }

    /// Removes clients of an app with an attribute, at most `limit` of them; returns their number.
    package func removeClients(
        of app: String, with attribute: (name: String, value: String), limit: Int
    ) async throws -> Int {
        try await writer.write(for: .app(app), cost: 256 * limit) {
            let keys = try $0.deleteRegistrations(app: app, attribute: attribute, limit: limit)
            return self.jobs.removed(keys.map { ClientKey($0) }, &$0)
        }
    }

    /// Removes clients unseen since a time in milliseconds since 1970, at most `limit` of them;
    /// returns their number.
    package func removeClients(unseenSince: Int64, limit: Int) async throws -> Int {
        try await writer.write(for: .gateway, cost: 256 * limit, freesSpace: true) {
            let keys = try $0.deleteRegistrations(unseenSince: unseenSince, limit: limit)
            return self.jobs.removed(keys.map { ClientKey($0) }, &$0)
        }
    }
}

extension ClientKey {
    fileprivate init(_ key: RegistrationKey) { self.init(app: key.app, client: key.client) }
}
