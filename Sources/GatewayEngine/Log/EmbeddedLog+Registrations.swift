import GatewayCore
import GatewayRecords
import GatewayStorage

extension EmbeddedLog {
    /// Reads without the writer's thread.
    package func registration(_ key: ClientKey) async throws -> RegistrationVersion? {
        // Most clients that register are new; the writer checks again.
        guard registry.record(key) != nil else { return nil }
        do {
            return try await store.registration(app: key.app, client: key.client)
                .map { RegistrationVersion(payload: $0.payload) }
        } catch let error as StoreError {
            throw EngineError.store(error)
        }
    }

    package func put(_ update: RegistrationUpdate) async throws -> RegistrationUpdate.Outcome {
        let (key, made) = (update.key, update.replacement)
        let cost = 1_024 + made.payload.count + (update.base.version?.payload.count ?? 0)
        let stored = try await writer.write(for: .app(key.app), cost: cost) {
            transaction -> Result<(isNew: Bool, receipts: ShardReceipts), Outdated> in
            let current = try transaction.registration(app: key.app, client: key.client)
                .map { RegistrationVersion(payload: $0.payload) }
            let ruleSet = self.catalogs.entry(of: key.app, transaction).ruleSet
            guard current == update.base.version, ruleSet === update.base.ruleSet else {
                return .failure(Outdated(current: current))
            }
            if current == nil { try self.writer.checkNewClient(of: key.app, transaction) }
            let now = self.clock.wallMilliseconds()
            let isNew = try transaction.putRegistration(
                app: key.app, client: key.client, payload: made.payload,
                attributes: made.record.attributes, updatedAt: now, isSeen: update.isSeen)
            let receipts = ShardReceipts(count: self.publisher.loopCount)
            transaction.afterCommit {
                self.registry.put(made.record, app: key.app, at: self.store.head)
                if update.isSeen { self.registry.noteSeen(key, now: now, isStored: true) }
                self.publisher.publish([
                    update.confirms
                        ? .confirmed(made.record, app: key.app, receipts: receipts)
                        : .registered(made.record, app: key.app, receipts: receipts)
                ])
            }
            return .success((isNew, receipts))
        }
        switch stored {
        case .success(let (isNew, receipts)):
            return .stored(isNew: isNew, position: await receipts.lowestPosition)
        case .failure(let outdated): return .outdated(outdated.current)
        }
    }

    /// The registration that is in force instead of the expected one.
    private struct Outdated: Error {
        let current: RegistrationVersion?
    }

    // MARK: Removal

    package func remove(_ key: ClientKey) async throws -> Bool {
        let count = try await remove(for: .app(key.app), limit: 1) { transaction in
            try transaction.deleteRegistration(app: key.app, client: key.client) ? [key] : []
        }
        return count > 0
    }

    package func removeClients(
        of app: String, with attribute: (name: String, value: String), limit: Int
    ) async throws -> Int {
        try await remove(for: .app(app), limit: limit) {
            try $0.deleteRegistrations(app: app, attribute: attribute, limit: limit)
                .map { ClientKey(app: $0.app, client: $0.client) }
        }
    }

    package func removeClients(unseenSince: Int64, limit: Int) async throws -> Int {
        try await remove(for: .gateway, limit: limit, freesSpace: true) {
            try $0.deleteRegistrations(unseenSince: unseenSince, limit: limit)
                .map { ClientKey(app: $0.app, client: $0.client) }
        }
    }

    /// Removes the clients that `delete` deletes from the store; returns their number.
    private func remove(
        for lane: WriterLane, limit: Int, freesSpace: Bool = false,
        _ delete: @escaping @Sendable (inout StoreTransaction) throws -> [ClientKey]
    ) async throws -> Int {
        try await writer.write(for: lane, cost: 256 * limit, freesSpace: freesSpace) {
            transaction in
            let keys = try delete(&transaction)
            if !keys.isEmpty {
                transaction.afterCommit {
                    for key in keys { self.registry.remove(key) }
                    self.publisher.publish(keys.map { .removed($0) })
                }
            }
            return keys.count
        }
    }
}
