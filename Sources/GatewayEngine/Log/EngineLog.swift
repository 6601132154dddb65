import Foundation
import GatewayCore
import GatewayDocuments
import GatewayStorage
import GatewayTelemetry
import Logging
import Tracing
import WidgetModel

/// The log and the registrations, as the engine writes them in its store.
///
/// - A write is stored whole or not at all. A method returns when its write is durable and handed
///   to every event loop of this gateway, and throws if nothing was written or the outcome is
///   unknown.
/// - Sequences have no gaps. Event loops receive only durable entries, in the order of sequences.
/// - A write that was decided under a catalog or registration that is no longer in force writes
///   nothing and says so; the caller decides again.
/// - An event is identified by the bytes of its source and id while the log keeps it, until its app
///   is removed.
package final class EngineLog: Sendable {
    let store: SQLiteStore
    let catalogs: AppCatalogs
    let registry: Registry
    let quota: AppQuota
    let applier: LogApplier
    let clock: GatewayClock
    /// `nil` where nothing is traced.
    private let tracing: GatewayTracing?
    private let leader: (any LogLeader)?

    /// - Parameter leader: `nil` if no other gateway shares the log.
    init(
        store: SQLiteStore, catalogs: AppCatalogs, registry: Registry, quota: AppQuota,
        applier: LogApplier, clock: GatewayClock, tracing: GatewayTracing?,
        leader: (any LogLeader)?
    ) {
        self.store = store
        self.catalogs = catalogs
        self.registry = registry
        self.quota = quota
        self.applier = applier
        self.clock = clock
        self.tracing = tracing
        self.leader = leader
    }

    /// The highest sequence that is durable.
    package var head: UInt64 { store.head }

    /// Waits until this gateway has applied everything that any gateway of the log had answered for
    /// at the time of the call; returns the head.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if that cannot be known now.
    package func barrier() async throws -> UInt64 {
        try await leader?.barrier()
        return store.head
    }

    /// The backlog of an event loop or of the sealer, in entries, beyond which writes are rejected:
    /// entries that wait are kept in memory.
    package static let backlogMax: UInt64 = 200_000

    /// Runs a job on the writer's thread and waits until its writes are on disk.
    ///
    /// - Parameters:
    ///   - lane: The lane of the app on whose behalf the job runs.
    ///   - freesSpace: See ``SQLiteStore/write(for:cost:freesSpace:_:)``.
    /// - Throws: The job's errors; ``EngineError/busy(_:)`` and ``EngineError/store(_:)`` if the
    ///   event loops or the disk cannot keep up.
    package func write<T: Sendable>(
        for lane: WriterLane, cost: Int, freesSpace: Bool = false,
        _ job: @escaping @Sendable (inout StoreTransaction) throws -> T
    ) async throws -> T {
        guard applier.publisher.backlog(behind: store.head) <= Self.backlogMax else {
            throw EngineError.busy(.eventLoops)
        }
        let span = tracing?.beginCommit()
        do {
            let value = try await store.write(for: lane, cost: cost, freesSpace: freesSpace) {
                transaction in
                // Until now it waited for the previous transaction.
                span?.addEvent("writing")
                return try job(&transaction)
            }.value
            span?.end()
            return value
        } catch {
            let error = (error as? StoreError).map(EngineError.store) ?? error
            span?.end(failing: error)
            throw error
        }
    }

    // MARK: Changes, catalogs and apps

    /// Appends the events of a post that the log does not contain.
    ///
    /// - Returns: `nil` if another catalog is in force than the one that decided the post.
    /// - Throws: ``EngineError/unknownApp``; ``EngineError/eventIDReused(_:)`` if the log contains
    ///   an event of the same source and id with other data; ``EngineError/invalid(_:)`` if an
    ///   event that the log does not contain invalidates too much; ``EngineError/quota(_:)``.
    package func append(
        _ post: DecidedPost, to app: String, trace: PostTrace?
    ) async throws -> PostOutcome? {
        try await write(for: .app(app), cost: post.memoryBytes) {
            try self.post(post, to: app, trace: trace, &$0)
        }
    }

    /// Appends a start that the log does not contain.
    ///
    /// - Parameter isFull: Whether as many starts of the app as are allowed may still be pushed.
    /// - Returns: `nil` if its channels are missing.
    /// - Throws: ``EngineError/unknownApp``; ``EngineError/eventIDReused(_:)`` for another start
    ///   with its id; ``EngineError/invalid(_:)`` for an undeclared type;
    ///   ``EngineError/quota(_:)``.
    package func append(
        _ start: ActivityStart, to app: String, isFull: Bool = false
    ) async throws -> StartTaken? {
        try await write(for: .app(app), cost: 8_192) {
            try self.start(start, of: app, isFull: isFull, &$0)
        }
    }

    /// Appends an operator's reload; returns its sequence.
    ///
    /// - Throws: ``EngineError/unknownApp`` and ``EngineError/unknownClient``;
    ///   ``EngineError/invalid(_:)`` for a kind that is not declared.
    package func append(
        _ scope: ReloadScope, to app: String, trace: ReloadTrace?
    ) async throws -> UInt64 {
        try await write(for: .app(app), cost: 256) {
            try self.reload(scope, of: app, trace: trace, &$0)
        }
    }

    /// Puts a catalog in force. Writes nothing if its document is in force already.
    ///
    /// - Returns: `nil` if the catalog that it was compiled to replace is not in force.
    /// - Throws: ``EngineError/preconditionFailed``; ``EngineError/quota(_:)``.
    package func put(_ upload: CatalogUpload) async throws -> CatalogOutcome? {
        try await write(for: .app(upload.app), cost: 2 * upload.body.count + 256) {
            try self.put(upload, &$0)
        }
    }

    /// Removes an app with its catalog and clients, and ends their streams. If the disk refuses,
    /// nothing is removed. Other writes wait while the clients are removed.
    ///
    /// The removal has an entry in the log, like a catalog. A catalog uploaded later is a first
    /// one, whose rules are newer than every cursor issued before: clients that present such a
    /// cursor rebuild everything.
    ///
    /// - Returns: The sequence at which the app ended, and the number of its clients.
    /// - Throws: ``EngineError/unknownApp`` for an app without a catalog.
    package func removeApp(_ app: String) async throws -> (sequence: UInt64, clients: Int) {
        try await write(for: .app(app), cost: 4096) { try self.removeApp(app, &$0) }
    }

    // MARK: Registrations

    /// Returns a registration as it is stored; `nil` if there is none. Reads without the writer's
    /// thread.
    package func registration(_ key: ClientKey) async throws -> Data? {
        // Most clients that register are new; the writer checks again.
        guard registry.record(key) != nil else { return nil }
        do {
            return try await store.registration(app: key.app, client: key.client)?.payload
        } catch let error as StoreError {
            throw EngineError.store(error)
        }
    }

    /// Stores a registration in place of the one that it was made from. Returns when every event
    /// loop of this gateway has applied it.
    ///
    /// - Throws: ``EngineError/quota(_:)`` if the app has the maximum number of clients.
    package func put(_ update: RegistrationUpdate) async throws -> RegistrationUpdate.Outcome {
        let bytes =
            update.replacement.payload.count + (update.base.payload?.count ?? 0)
        let stored = try await write(for: .app(update.key.app), cost: 1_024 + bytes) {
            try self.put(update, &$0)
        }
        switch stored {
        case .stored(let isNew, let receipts):
            return .stored(isNew: isNew, position: await receipts.lowestPosition)
        case .outdated(let current): return .outdated(current)
        }
    }

    /// Removes a client; returns whether it was registered.
    package func remove(_ key: ClientKey) async throws -> Bool {
        try await write(for: .app(key.app), cost: 256) {
            let isRemoved = try $0.deleteRegistration(app: key.app, client: key.client)
            return self.removed(isRemoved ? [key] : [], &$0) > 0
        }
    }

    /// Removes clients of an app with an attribute, at most `limit` of them; returns their number.
    package func removeClients(
        of app: String, with attribute: (name: String, value: String), limit: Int
    ) async throws -> Int {
        try await write(for: .app(app), cost: 256 * limit) {
            let keys = try $0.deleteRegistrations(app: app, attribute: attribute, limit: limit)
            return self.removed(keys.map { ClientKey($0) }, &$0)
        }
    }

    /// Removes clients unseen since a time in milliseconds since 1970, at most `limit` of them;
    /// returns their number.
    package func removeClients(unseenSince: Int64, limit: Int) async throws -> Int {
        try await write(for: .gateway, cost: 256 * limit, freesSpace: true) {
            let keys = try $0.deleteRegistrations(unseenSince: unseenSince, limit: limit)
            return self.removed(keys.map { ClientKey($0) }, &$0)
        }
    }

    /// The interval between two attempts to write an epoch to disk.
    private static let epochRetry = Duration.seconds(2)

    /// Opens an epoch that voids all earlier ones: writes it to disk and then announces it to every
    /// loop, which notifies every open stream that everything is stale.
    ///
    /// The epoch is announced even if the disk refuses it, because responses wait for it. If the
    /// program ends before the epoch is written, the next start does not know its cursors, which
    /// proves the loss again.
    func openEpoch(_ epoch: EpochID, logger: Logger) {
        logger.error("a client has a cursor past the end of the log: all existing cursors are void")
        Task {
            while true {
                do {
                    _ = try await store.write(cost: 256) {
                        try self.openEpoch(epoch, voidsOlder: true, &$0)
                    }
                    return
                } catch StoreError.closed {
                    return
                } catch {
                    logger.error(
                        "cannot write the new epoch", metadata: ["error": "\(error)"])
                }
                // Not by `apply`, which only the writer's thread may call.
                applier.open(
                    EpochLedger.Epoch(id: epoch, openedAt: store.head, isVoid: false),
                    voidsOlder: true)
                try? await Task.sleep(for: Self.epochRetry)
            }
        }
    }
}

extension ClientKey {
    fileprivate init(_ key: RegistrationKey) { self.init(app: key.app, client: key.client) }
}
