import GatewayCore
import GatewayRecords
import GatewayStorage
import WidgetModel

/// The log and the registrations in the embedded store of this gateway.
package final class EmbeddedLog: EngineLog {
    let store: SQLiteStore
    let writer: LogWriter
    package let jobs: LogJobs
    private let waitForOthers: (@Sendable () async throws -> Void)?

    /// - Parameter barrier: See ``Engine/init(_:store:pushLoop:services:barrier:)``.
    init(
        store: SQLiteStore, writer: LogWriter, jobs: LogJobs,
        barrier: (@Sendable () async throws -> Void)? = nil
    ) {
        self.store = store
        self.writer = writer
        self.jobs = jobs
        waitForOthers = barrier
    }

    package var head: UInt64 { store.head }

    package func barrier() async throws -> UInt64 {
        try await waitForOthers?()
        return store.head
    }

    /// All registrations are read at the start.
    package func isHeld(_ key: ClientKey) -> Bool { true }

    package func hold(_ key: ClientKey) async throws {}

    // MARK: Changes, catalogs and apps

    package func append(
        _ post: DecidedPost, to app: String, trace: PostTrace?
    ) async throws -> PostOutcome? {
        try await writer.write(for: .app(app), cost: post.memoryBytes) {
            try self.jobs.post(post, to: app, trace: trace, &$0)
        }
    }

    package func append(
        _ scope: ReloadScope, to app: String, trace: ReloadTrace?
    ) async throws -> UInt64 {
        try await writer.write(for: .app(app), cost: 256) {
            try self.jobs.reload(scope, of: app, trace: trace, &$0)
        }
    }

    package func put(_ upload: CatalogUpload) async throws -> CatalogOutcome? {
        try await writer.write(for: .app(upload.app), cost: 2 * upload.body.count + 256) {
            try self.jobs.put(upload, &$0)
        }
    }

    /// Other writes wait while the clients are removed.
    package func removeApp(_ app: String) async throws -> (sequence: UInt64, clients: Int) {
        try await writer.write(for: .app(app), cost: 4096) { try self.jobs.removeApp(app, &$0) }
    }

    // MARK: Registrations

    /// Reads without the writer's thread.
    package func registration(_ key: ClientKey) async throws -> RegistrationVersion? {
        // Most clients that register are new; the writer checks again.
        guard jobs.registry.record(key) != nil else { return nil }
        do {
            return try await store.registration(app: key.app, client: key.client)
                .map { RegistrationVersion(payload: $0.payload) }
        } catch let error as StoreError {
            throw EngineError.store(error)
        }
    }

    package func put(_ update: RegistrationUpdate) async throws -> RegistrationUpdate.Outcome {
        let bytes =
            update.replacement.payload.count + (update.base.version?.payload.count ?? 0)
        let stored = try await writer.write(for: .app(update.key.app), cost: 1_024 + bytes) {
            try self.jobs.put(update, &$0)
        }
        switch stored {
        case .stored(let isNew, let receipts):
            return .stored(isNew: isNew, position: await receipts.lowestPosition)
        case .outdated(let current): return .outdated(current)
        }
    }

    package func remove(_ key: ClientKey) async throws -> Bool {
        try await writer.write(for: .app(key.app), cost: 256) {
            let isRemoved = try $0.deleteRegistration(app: key.app, client: key.client)
            return self.jobs.removed(isRemoved ? [key] : [], &$0) > 0
        }
    }

    package func removeClients(
        of app: String, with attribute: (name: String, value: String), limit: Int
    ) async throws -> Int {
        try await writer.write(for: .app(app), cost: 256 * limit) {
            let keys = try $0.deleteRegistrations(app: app, attribute: attribute, limit: limit)
            return self.jobs.removed(keys.map { ClientKey($0) }, &$0)
        }
    }

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
