import Foundation
import GatewayCore
import GatewayRecords
import GatewayStorage
import WidgetModel

/// The registration and the rules that a replacement is based on.
struct RegistrationBase: Sendable {
    /// The registration as it is stored; `nil` for a client that is not registered.
    let payload: Data?
    /// The payload, decoded.
    let stored: StoredRegistration?
    /// The rules of the app; `nil` for an app without a catalog.
    let ruleSet: RuleSet?

    init(payload: Data?, ruleSet: RuleSet?) throws {
        self.payload = payload
        stored = try payload.map { try StoredRegistration($0, limits: .none) }
        self.ruleSet = ruleSet
    }
}

/// A registration that has been read, checked and encoded and only needs to be stored.
struct RegistrationReplacement: Sendable {
    /// The registration as the shards see it.
    let record: ClientRecord
    /// The registration as it is stored.
    let payload: Data
    /// Warnings about parts of the document that have no effect.
    let warnings: Faults

    /// - Parameter document: The registration as JSON, if it has been encoded already.
    init(
        _ stored: StoredRegistration, _ record: ClientRecord, document: JSONValue? = nil,
        warnings: Faults = Faults()
    ) {
        self.record = record
        self.warnings = warnings
        payload = document.map { stored.payload(of: $0) } ?? stored.payload
    }
}

extension ClientDirectory {
    /// The maximum number of attempts at replacing a registration that others replace concurrently.
    static let replacementAttemptsMax = 8

    /// A replacement that is on disk.
    struct Replaced: Sendable {
        let replacement: RegistrationReplacement
        /// Whether the client had no registration before.
        let isNew: Bool
        /// Completed when every shard has applied it.
        let receipts: ShardReceipts
    }

    private enum Attempt: Sendable {
        case stored(Replaced)
        /// The registration or the catalog in force is not the one that the replacement was based
        /// on.
        case outdated(payload: Data?)
    }

    /// Replaces a client's registration with one that `replacement` makes from it.
    ///
    /// `replacement` is called on the caller's thread, because reading, merging and checking cost
    /// as much as the client chooses to send, and all apps share the log's writer: there the
    /// registration and the rules in force are only compared with those that the replacement was
    /// based on, and the result is stored. If one of them changed in between, for example through a
    /// new catalog, `replacement` is called again, at most ``replacementAttemptsMax`` times in all.
    /// Replacements for one client wait for each other.
    ///
    /// - Parameters:
    ///   - documentBytes: The size of the input that `replacement` reads in addition to the
    ///     registration.
    ///   - confirms: Whether only the client's confirmations changed.
    /// - Returns: The replacement, once it is on disk; `nil` if `replacement` makes none.
    /// - Throws: The errors of `replacement`; ``EngineError/quota(_:)`` if the app has the maximum
    ///   number of clients; ``EngineError/busy(_:)`` if too many replacements for the client wait,
    ///   or if its registration changed at each attempt.
    func replaceRegistration(
        of key: ClientKey, documentBytes: Int = 0, confirms: Bool = false,
        with replacement: (RegistrationBase) async throws -> RegistrationReplacement?
    ) async throws -> Replaced? {
        guard await locks.lock(key) else { throw EngineError.busy(.registrations) }
        defer { locks.unlock(key) }
        var payload = try await storedPayload(key)
        for _ in 0..<Self.replacementAttemptsMax {
            let size = documentBytes + (payload?.count ?? 0)
            let (base, made) = try await documents.run(.bytes(size), for: key.app) {
                let base = try RegistrationBase(
                    payload: payload, ruleSet: catalogs.ruleSet(of: key.app))
                return (base, try await replacement(base))
            }
            guard let made else { return nil }
            switch try await store(made, of: key, replacing: base, confirms: confirms) {
            case .stored(let replaced): return replaced
            case .outdated(let current): payload = current
            }
        }
        throw EngineError.busy(.registrationChanges)
    }

    /// Returns a client's registration as stored, read without the writer thread.
    private func storedPayload(_ key: ClientKey) async throws -> Data? {
        // Most clients that register are new; the writer checks again.
        guard registry.record(key) != nil else { return nil }
        do {
            return try await store.registration(app: key.app, client: key.client)?.payload
        } catch let error as StoreError {
            throw EngineError.store(error)
        }
    }

    private func store(
        _ made: RegistrationReplacement, of key: ClientKey, replacing base: RegistrationBase,
        confirms: Bool
    ) async throws -> Attempt {
        let (basePayload, baseRules) = (base.payload, base.ruleSet)
        let cost = 1_024 + made.payload.count + (basePayload?.count ?? 0)
        return try await writer.write(for: .app(key.app), cost: cost) { transaction in
            let current = try transaction.registration(app: key.app, client: key.client)?.payload
            let ruleSet = self.catalogs.entry(of: key.app, transaction).ruleSet
            guard current == basePayload, ruleSet === baseRules else {
                return .outdated(payload: current)
            }
            if current == nil { try self.writer.checkNewClient(of: key.app, transaction) }
            let isNew = try transaction.putRegistration(
                app: key.app, client: key.client, payload: made.payload,
                attributes: made.record.attributes, updatedAt: self.clock.wallMilliseconds())
            let receipts = ShardReceipts(count: self.writer.loopCount)
            transaction.afterCommit {
                self.registry.put(made.record, app: key.app, at: self.store.head)
                self.writer.publish([
                    confirms
                        ? .confirmed(made.record, app: key.app, receipts: receipts)
                        : .registered(made.record, app: key.app, receipts: receipts)
                ])
            }
            return .stored(Replaced(replacement: made, isNew: isNew, receipts: receipts))
        }
    }
}
