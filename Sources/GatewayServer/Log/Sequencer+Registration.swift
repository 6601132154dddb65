import Foundation
import GatewayCore
import GatewayStorage
import NIOCore
import Synchronization
import WidgetModel

/// Who registers a client, which decides what it may state.
enum Registrar: Sendable {
    /// The client itself, with the attributes its token vouches for.
    case client(vouched: [String: [String]])
    /// A backend.
    case backend
}

/// What a registration is made from.
enum RegistrationInput: Sendable {
    /// The whole document.
    case document(JSONValue)
    /// A merge patch (RFC 7396).
    case patch(JSONValue)

    /// Whether it says how the client is told.
    var namesAddresses: Bool {
        switch self {
        case .document: true
        case .patch(let patch):
            patch.objectValue.map { $0["delivery"] != nil || $0["controls"] != nil } ?? false
        }
    }

    /// Whether the change names attributes.
    var namesAttributes: Bool {
        switch self {
        case .document: true
        case .patch(let patch): patch.objectValue?["attributes"] != nil
        }
    }

    /// The attributes that a patch names; `nil` where all are replaced.
    var attributesPatched: Set<String>? {
        switch self {
        case .document: nil
        case .patch(let patch):
            patch.objectValue?["attributes"]?.objectValue.map { Set($0.members.map(\.name)) }
        }
    }
}

extension StoredRegistration {
    /// The document that a patch changes: of attributes only those that the registrar answers for,
    /// so that it does not take over what others vouched for.
    func base(of registrar: Registrar) -> JSONValue {
        var base = registration
        base.attributes =
            switch registrar {
            case .client: attributes.own
            case .backend: attributes.backend
            }
        return base.json(maskingTokens: false)
    }
}

extension Sequencer {
    /// What became of a registration.
    struct RegistrationOutcome: Sendable {
        let isNew: Bool
        /// The lowest position at which a shard took it.
        let position: UInt64
        /// Stands for what was registered.
        let digest: String
        /// Whether a webhook is among its addresses.
        let hasWebhook: Bool
        /// At most ``Faults/keptMax`` of them are listed.
        let warnings: Faults
    }

    /// Registers a client: returns when it is on disk and every shard has taken it.
    ///
    /// - Parameter size: The bytes of the document that `input` was read from; 0 for one that is small.
    func register(
        _ key: ClientKey, _ input: RegistrationInput, size: Int = 0, by registrar: Registrar
    ) async throws -> RegistrationOutcome {
        let taken = ShardReceipts(count: loopCount)
        let stored = try await replaceRegistration(of: key, documentBytes: size) { record in
            .registered(record, app: key.app, taken: { taken.took(at: $0) })
        } with: { base in
            try self.registration(key, input, registrar, base)
        }
        guard let (replacement, isNew) = stored else { throw Problem.unknownClient }
        return RegistrationOutcome(
            isNew: isNew, position: await taken.lowestPosition(),
            digest: replacement.record.digest,
            hasWebhook: replacement.record.registration.delivery.contains(where: \.isWebhook),
            warnings: replacement.warnings)
    }

    /// Makes a registration from a document or a patch.
    private func registration(
        _ key: ClientKey, _ input: RegistrationInput, _ registrar: Registrar,
        _ base: RegistrationBase
    ) throws -> RegistrationReplacement {
        guard let ruleSet = base.ruleSet else { throw Problem.unknownApp }
        let previous = base.stored
        let document: JSONValue
        switch input {
        case .document(let value): document = value
        case .patch(let patch):
            guard let previous else { throw Problem.unknownClient }
            document = previous.base(of: registrar).merging(patch: patch)
        }
        let reading: ClientRegistration.Reading
        do throws(Faults) {
            reading = try ClientRegistration.read(document, limits: limits)
        } catch {
            throw Problem.wrong(error)
        }
        var stored = StoredRegistration(registration: reading.registration)
        stored.attributes = try decidedAttributes(
            reading.registration.attributes, input, previous, registrar, ruleSet.catalog)
        stored.digest = RegistrationDigest.text(of: stored.registration, stored.attributes)
        try RegistrationRules.checkWebhooks(stored.registration, previous, registrar)
        // Entries between now and the commit count as missed, which reloads too much and never too
        // little.
        let head = store.head
        for set in stored.registration.recommendations {
            stored.confirmed[set.kind] = confirmedPosition(of: set, previous, head: head)
        }
        stored.since = previous?.since ?? head
        stored.addressedAt =
            input.namesAddresses ? desk.wallMilliseconds() : previous?.addressedAt ?? 0
        let record = stored.record(of: key.client)
        let faults = ruleSet.faults(in: record, limits: limits)
        guard faults.isEmpty else { throw Problem.wrong(faults) }
        var warnings = reading.warnings
        ruleSet.addWarnings(about: record, to: &warnings)
        return RegistrationReplacement(stored, record, warnings: warnings)
    }

    /// The cursor a set was built at; or what was confirmed before; or, for a new set, now.
    private func confirmedPosition(
        of set: RecommendationSet, _ previous: StoredRegistration?, head: UInt64
    ) -> UInt64 {
        guard let builtAt = set.builtAt else { return previous?.confirmed[set.kind] ?? head }
        if case .after(let sequence) = desk.judge(builtAt).point { return sequence }
        return 0
    }

    /// The attributes that a registration puts in force.
    private func decidedAttributes(
        _ stated: [String: [String]], _ input: RegistrationInput, _ previous: StoredRegistration?,
        _ registrar: Registrar, _ catalog: Catalog
    ) throws -> ClientAttributes {
        let before = previous?.attributes ?? ClientAttributes()
        switch registrar {
        case .backend:
            guard input.namesAttributes else { return before }
            return ClientAttributes(
                statedByBackend: stated, naming: input.attributesPatched, before: before)
        case .client(let vouched):
            do throws(ClientAttributes.Refusal) {
                return try ClientAttributes(
                    statedByClient: stated, token: vouched, before: before,
                    selfDeclared: catalog.selfDeclared)
            } catch {
                throw Problem.attributes(error)
            }
        }
    }

    /// Puts in force the attributes that a client's present token vouches for, in the place of those
    /// of the token before: returns when they are on disk and every shard has taken them.
    ///
    /// - Returns: The registration in force.
    /// - Throws: 403 where they contradict the registration, 404 where there is none, 422 where the
    ///   client would depend on too much.
    func present(
        _ claims: [String: [String]], of key: ClientKey
    ) async throws -> ClientRecord {
        let taken = ShardReceipts(count: loopCount)
        var inForce: ClientRecord?
        let stored = try await replaceRegistration(of: key) { record in
            .registered(record, app: key.app, taken: { taken.took(at: $0) })
        } with: { base in
            guard let ruleSet = base.ruleSet else { throw Problem.unknownApp }
            guard var stored = base.stored else { throw Problem.unknownClient }
            guard stored.attributes.token != claims else {
                inForce = stored.record(of: key.client)
                return nil
            }
            do throws(ClientAttributes.Refusal) {
                stored.attributes = try stored.attributes.presenting(claims)
            } catch {
                throw Problem.attributes(error)
            }
            let record = stored.record(of: key.client)
            let faults = ruleSet.faults(in: record, limits: self.limits)
            guard faults.isEmpty else { throw Problem.wrong(faults) }
            return RegistrationReplacement(stored, record)
        }
        if stored != nil { _ = await taken.lowestPosition() }
        guard let record = stored?.0.record ?? inForce else { throw Problem.unknownClient }
        return record
    }

    /// Removes a client; its streams end. Throws when it is not registered.
    func remove(_ key: ClientKey) async throws {
        let existed = try await write(for: .app(key.app), cost: 256) { transaction in
            let existed = try transaction.deleteRegistration(app: key.app, client: key.client)
            if existed { self.forgetAfterCommit([key], &transaction) }
            return existed
        }
        guard existed else { throw Problem.unknownClient }
    }

    /// Erases every client with an attribute; returns how many they were.
    func erase(app: String, attribute: (name: String, value: String)) async throws -> Int {
        let batch = 500
        var erased = 0
        while true {
            let count = try await write(for: .app(app), cost: 256 * batch) { transaction in
                let keys = try transaction.deleteRegistrations(
                    app: app, attribute: attribute, limit: batch
                ).map { ClientKey(app: $0.app, client: $0.client) }
                self.forgetAfterCommit(keys, &transaction)
                return keys.count
            }
            erased += count
            if count < batch { return erased }
        }
    }

    /// Removes clients unseen for too long; returns whether there may be more.
    func removeUnseen(since: Int64) async throws -> Bool {
        let batch = 500
        let count = try await write(for: .gateway, cost: 256 * batch, freesSpace: true) {
            transaction in
            let keys = try transaction.deleteRegistrations(unseenSince: since, limit: batch)
                .map { ClientKey(app: $0.app, client: $0.client) }
            self.forgetAfterCommit(keys, &transaction)
            return keys.count
        }
        return count == batch
    }

    /// Takes an address out of a client's registration, if it is still there: its token is dead, or
    /// is another client's.
    func drop(_ address: DeliveryAddress, of key: ClientKey) async throws {
        _ = try await replaceRegistration(of: key) { record in
            .registered(record, app: key.app, taken: { _ in })
        } with: { base in
            guard var stored = base.stored else { return nil }
            stored.registration.delivery.removeAll { $0 == address }
            for index in stored.registration.controls.indices
            where stored.registration.controls[index].delivery == address {
                stored.registration.controls[index].delivery = nil
            }
            guard stored.registration != base.stored?.registration else { return nil }
            return RegistrationReplacement(stored, stored.record(of: key.client))
        }
    }

    private func forgetAfterCommit(_ keys: [ClientKey], _ transaction: inout StoreTransaction) {
        guard !keys.isEmpty else { return }
        transaction.afterCommit {
            for key in keys { self.registry.remove(key) }
            self.handOver(keys.map { .removed($0) })
        }
    }

    /// Moves what is known of recommendation sets on where nothing is owed, before the log forgets
    /// what it was known by: a quiet set must not be told anew only because time passed.
    func confirmUnowed(below sequence: UInt64) async throws {
        let batch = 500
        for (key, record) in registry.confirmed(below: sequence, limit: batch) {
            // Most sets are still owed, and then no registration has to be read.
            guard try await unowedSets(of: record, app: key.app, below: sequence) != nil else {
                continue
            }
            // A client that is gone meanwhile is owed nothing.
            _ = try await confirm(key) {
                try await self.unowedSets(of: $0, app: key.app, below: sequence)
            }
        }
    }

    /// The kinds of a registration's recommendation sets that are confirmed below `sequence` and of
    /// which nothing is owed, and up to where that is known; `nil` where there are none.
    private func unowedSets(
        of record: ClientRecord, app: String, below sequence: UInt64
    ) async throws -> (kinds: [String], position: UInt64)? {
        let answer = try await loops[0].loop.submit { [loops] in
            loops[0].owedSets(of: record, app: app)
        }.get()
        guard let (owed, position) = answer else { return nil }
        let quiet = record.confirmed.filter { $0.value < sequence && !owed.contains($0.key) }
        return quiet.isEmpty ? nil : (quiet.keys.sorted(), position)
    }

    /// Notes that a client has the recommendation sets of these kinds as of `sequence`.
    func confirm(
        _ key: ClientKey, _ recommendations: [String], upTo sequence: UInt64
    ) async throws {
        let isRegistered = try await confirm(key) { _ in (recommendations, sequence) }
        guard isRegistered else { throw Problem.unknownClient }
    }

    /// Notes that a client has some of its recommendation sets.
    ///
    /// - Parameter judge: Returns the kinds of those sets and the position they are judged at, for a
    ///   given registration; `nil` for none. It is called again if another registration is in force
    ///   by the time its answer is stored, since that one may be owed more.
    /// - Returns: Whether the client is registered.
    func confirm(
        _ key: ClientKey,
        judge: (ClientRecord) async throws -> (kinds: [String], position: UInt64)?
    ) async throws -> Bool {
        let taken = ShardReceipts(count: loopCount)
        var isRegistered = true
        let stored = try await replaceRegistration(of: key) { record in
            .confirmed(record, app: key.app, taken: { taken.took(at: $0) })
        } with: { base in
            guard var stored = base.stored else {
                isRegistered = false
                return nil
            }
            guard let (judged, position) = try await judge(stored.record(of: key.client)) else {
                return nil
            }
            let kinds = judged.filter { (stored.confirmed[$0] ?? position) < position }
            guard !kinds.isEmpty else { return nil }
            for kind in kinds { stored.confirmed[kind] = position }
            return RegistrationReplacement(stored, stored.record(of: key.client))
        }
        if stored != nil { _ = await taken.lowestPosition() }
        return isRegistered
    }
}

/// Waits until every shard has taken a registration, and keeps the lowest position at which one
/// did.
final class ShardReceipts: Sendable {
    private struct State {
        var missing: Int
        var lowest = UInt64.max
        var waiter: CheckedContinuation<UInt64, Never>?
    }

    private let state: Mutex<State>

    init(count: Int) {
        state = Mutex(State(missing: count))
    }

    /// A shard took it at this position.
    func took(at position: UInt64) {
        let (waiter, lowest) = state.withLock {
            state -> (CheckedContinuation<UInt64, Never>?, UInt64) in
            state.missing -= 1
            state.lowest = min(state.lowest, position)
            guard state.missing == 0 else { return (nil, state.lowest) }
            defer { state.waiter = nil }
            return (state.waiter, state.lowest)
        }
        waiter?.resume(returning: lowest)
    }

    /// The lowest position, once every shard has taken it.
    func lowestPosition() async -> UInt64 {
        await withCheckedContinuation { continuation in
            let lowest = state.withLock { state -> UInt64? in
                if state.missing <= 0 { return state.lowest }
                state.waiter = continuation
                return nil
            }
            if let lowest { continuation.resume(returning: lowest) }
        }
    }
}

/// Rules of a registration that are neither the document's shape nor the catalog's.
enum RegistrationRules {
    /// Webhooks are a backend's to register: the gateway calls them.
    static func checkWebhooks(
        _ registration: ClientRegistration, _ previous: StoredRegistration?, _ registrar: Registrar
    ) throws {
        guard case .client = registrar else { return }
        let known = Set(previous?.registration.delivery ?? [])
        let hasNew = registration.delivery.contains { address in
            if case .webhook = address { !known.contains(address) } else { false }
        }
        if hasNew {
            throw Problem.forbidden(
                "webhook-needs-backend", "Only a token with clients:write may register webhooks.")
        }
    }
}
