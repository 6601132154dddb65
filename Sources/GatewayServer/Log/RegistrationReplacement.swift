import Foundation
import GatewayCore
import GatewayStorage
import Synchronization
import WidgetModel

/// The registration and the rules that a replacement was made from.
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

/// A registration that is read, checked and encoded: all that is left is to store it.
struct RegistrationReplacement: Sendable {
    /// The registration as the shards see it.
    let record: ClientRecord
    /// The registration as it is stored.
    let payload: Data
    /// The attributes that listings search by.
    let attributes: [String: [String]]
    /// Warnings about parts of the document that have no effect.
    let warnings: Faults

    init(_ stored: StoredRegistration, _ record: ClientRecord, warnings: Faults = Faults()) {
        self.record = record
        self.warnings = warnings
        payload = stored.payload
        attributes = record.attributes
    }
}

extension Sequencer {
    /// Attempts at replacing a registration that others replace at the same time.
    static let replacementAttemptsMax = 8

    private enum ReplacementOutcome: Sendable {
        case stored(isNew: Bool)
        /// Another registration, or another catalog, is in force than the replacement was made from.
        case outdated(payload: Data?)
    }

    /// Replaces the registration of a client by one that `replacement` makes from it.
    ///
    /// `replacement` is called on the caller's thread, for reading, merging and checking cost what the
    /// client chooses to send, and the log's writer is everybody's: there the registration and the
    /// rules in force are only compared with those the replacement was made from, and the result is
    /// stored. Where one of them changed in between, as by a new catalog, `replacement` is called again,
    /// at most ``replacementAttemptsMax`` times in all. Replacements for one client wait for each other.
    ///
    /// - Parameter documentBytes: The size of what `replacement` reads beside the registration.
    /// - Parameter message: Tells the shards of the new registration once it is on disk.
    /// - Returns: What was stored, and whether the client had no registration before; `nil` when
    ///   `replacement` makes none.
    /// - Throws: What `replacement` throws; 422 when the app has as many clients as it may; 503 when
    ///   the disk or the event loops cannot follow, when too
    ///   many replacements for the client wait, and when its registration changed at each attempt.
    func replaceRegistration(
        of key: ClientKey, documentBytes: Int = 0,
        message: @escaping @Sendable (ClientRecord) -> ShardLoop.Message,
        with replacement: (RegistrationBase) async throws -> RegistrationReplacement?
    ) async throws -> (RegistrationReplacement, isNew: Bool)? {
        guard await registrationTurns.enter(key) else {
            throw Problem.unavailable("Too many registrations of the client wait; try again.")
        }
        defer { registrationTurns.leave(key) }
        var payload = try await storedPayload(key)
        for _ in 0..<Self.replacementAttemptsMax {
            let size = documentBytes + (payload?.count ?? 0)
            let (base, replaced) = try await documents.run(.bytes(size), for: key.app) {
                let base = try RegistrationBase(payload: payload, ruleSet: ruleSet(of: key.app))
                return (base, try await replacement(base))
            }
            guard let made = replaced else { return nil }
            switch try await store(made, key, replacing: base, message) {
            case .stored(let isNew): return (made, isNew)
            case .outdated(let current): payload = current
            }
        }
        throw Problem.unavailable("The client's registration keeps changing; try again.")
    }

    /// The registration of a client as it is stored, read beside the writer.
    private func storedPayload(_ key: ClientKey) async throws -> Data? {
        // Most clients that register are new, and the writer looks again.
        guard registry.record(key) != nil else { return nil }
        do {
            return try await store.registration(app: key.app, client: key.client)?.payload
        } catch let error as StoreError {
            throw Problem.store(error)
        }
    }

    private func store(
        _ made: RegistrationReplacement, _ key: ClientKey, replacing base: RegistrationBase,
        _ message: @escaping @Sendable (ClientRecord) -> ShardLoop.Message
    ) async throws -> ReplacementOutcome {
        let (basePayload, baseRules) = (base.payload, base.ruleSet)
        let cost = 1_024 + made.payload.count + (basePayload?.count ?? 0)
        return try await write(for: .app(key.app), cost: cost) { transaction in
            let current = try transaction.registration(app: key.app, client: key.client)?.payload
            let ruleSet = self.withState(transaction) { $0.decider.ruleSets[key.app] }
            guard current == basePayload, ruleSet === baseRules else {
                return .outdated(payload: current)
            }
            if current == nil { try self.checkNewClient(of: key.app, transaction) }
            let isNew = try transaction.putRegistration(
                app: key.app, client: key.client, payload: made.payload,
                attributes: made.attributes, updatedAt: self.desk.wallMilliseconds())
            transaction.afterCommit {
                self.registry.put(made.record, app: key.app, at: self.store.head)
                self.handOver([message(made.record)])
            }
            return .stored(isNew: isNew)
        }
    }
}

/// Lets one task at a time replace the registration of a client, in the order in which they came, so
/// that none prepares a replacement in vain.
final class RegistrationTurns: Sendable {
    /// Tasks that may wait for one client.
    static let waitingMax = 64

    /// The tasks that wait, for each client whose registration is being replaced.
    private let waiting = Mutex<[ClientKey: [CheckedContinuation<Bool, Never>]]>([:])

    /// The number of tasks that wait for a turn with a client.
    func waitingCount(_ key: ClientKey) -> Int { waiting.withLock { $0[key]?.count ?? 0 } }

    /// Waits for a turn, which ``leave(_:)`` ends; returns `false` at once where too many wait already.
    func enter(_ key: ClientKey) async -> Bool {
        let isFree = waiting.withLock { waiting -> Bool in
            guard waiting[key] == nil else { return false }
            waiting[key] = []
            return true
        }
        if isFree { return true }
        return await withCheckedContinuation { continuation in
            let answer = waiting.withLock { waiting -> Bool? in
                guard let others = waiting[key] else {
                    waiting[key] = []
                    return true
                }
                guard others.count < Self.waitingMax else { return false }
                waiting[key, default: []].append(continuation)
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    /// Ends a turn; the task that has waited longest for the client has the next.
    func leave(_ key: ClientKey) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Bool, Never>? in
            guard waiting[key]?.isEmpty == false else {
                waiting[key] = nil
                return nil
            }
            return waiting[key]?.removeFirst()
        }
        next?.resume(returning: true)
    }
}
