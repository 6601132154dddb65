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
}

extension Sequencer {
    /// What became of a registration.
    struct RegistrationOutcome: Sendable {
        let isNew: Bool
        /// The lowest position at which a shard took it.
        var position: UInt64
        /// Whether a webhook is among its addresses.
        let hasWebhook: Bool
        let warnings: [Fault]
    }

    /// Registers a client: returns when it is on disk and every shard has taken it.
    func register(
        _ key: ClientKey, _ input: RegistrationInput, by registrar: Registrar
    ) async throws -> RegistrationOutcome {
        let taken = ShardReceipts(count: loopCount)
        let cost = 2048
        var outcome = try await write(cost: cost) { transaction in
            try self.register(key, input, registrar, taken, &transaction)
        }
        outcome.position = await taken.lowestPosition()
        return outcome
    }

    private func register(
        _ key: ClientKey, _ input: RegistrationInput, _ registrar: Registrar,
        _ taken: ShardReceipts, _ transaction: inout StoreTransaction
    ) throws -> RegistrationOutcome {
        let ruleSet = withState(transaction) { $0.decider.ruleSets[key.app] }
        guard let ruleSet else { throw Problem.unknownApp }
        let previous = try storedRegistration(key, &transaction)
        let document: JSONValue
        switch input {
        case .document(let value): document = value
        case .patch(let patch):
            guard let previous else { throw Problem.unknownClient }
            document = previous.registration.json(maskingTokens: false).merging(patch: patch)
        }
        let reading: ClientRegistration.Reading
        do throws(Faults) {
            reading = try ClientRegistration.read(document, limits: limits)
        } catch {
            throw Problem.wrong(error)
        }
        var stored = StoredRegistration(registration: reading.registration)
        try decideAttributes(&stored, previous, registrar, ruleSet.catalog)
        try RegistrationRules.checkWebhooks(stored.registration, previous, registrar)
        let head = transaction.nextSequence - 1
        for set in stored.registration.recommendations {
            stored.confirmed[set.kind] = confirmedPosition(of: set, previous, head: head)
        }
        stored.since = previous?.since ?? head
        stored.addressedAt =
            input.namesAddresses ? desk.wallMilliseconds() : previous?.addressedAt ?? 0
        let record = stored.record(of: key.client)
        let faults = ruleSet.faults(in: record, limits: limits)
        guard faults.isEmpty else { throw Problem.wrong(faults) }
        let isNew = try transaction.putRegistration(
            app: key.app, client: key.client, payload: stored.payload,
            attributes: stored.attributes, updatedAt: desk.wallMilliseconds())
        transaction.afterCommit {
            self.registry.put(record, app: key.app, at: self.store.head)
            self.handOver([.registered(record, app: key.app, taken: { taken.took(at: $0) })])
        }
        return RegistrationOutcome(
            isNew: isNew, position: 0,
            hasWebhook: reading.registration.delivery.contains(where: \.isWebhook),
            warnings: reading.warnings + ruleSet.warnings(about: record))
    }

    func storedRegistration(
        _ key: ClientKey, _ transaction: inout StoreTransaction
    ) throws -> StoredRegistration? {
        try transaction.registration(app: key.app, client: key.client).map {
            try StoredRegistration($0.payload, limits: .none)
        }
    }

    /// The cursor a set was built at; or what was confirmed before; or, for a new set, now.
    private func confirmedPosition(
        of set: RecommendationSet, _ previous: StoredRegistration?, head: UInt64
    ) -> UInt64 {
        guard let builtAt = set.builtAt else { return previous?.confirmed[set.kind] ?? head }
        if case .after(let sequence) = desk.point(of: builtAt) { return sequence }
        return 0
    }

    private func decideAttributes(
        _ stored: inout StoredRegistration, _ previous: StoredRegistration?,
        _ registrar: Registrar, _ catalog: Catalog
    ) throws {
        let stated = stored.registration.attributes
        let attributes: ClientAttributes
        switch registrar {
        case .backend:
            attributes = ClientAttributes(statedByBackend: stated)
        case .client(let vouched):
            do throws(ClientAttributes.Refusal) {
                attributes = try ClientAttributes(
                    statedByClient: stated, token: vouched, before: previous?.vouched ?? [:],
                    selfDeclared: catalog.selfDeclared)
            } catch {
                throw Self.problem(error)
            }
        }
        stored.own = attributes.own
        stored.vouched = attributes.vouched
    }

    private static func problem(_ refusal: ClientAttributes.Refusal) -> ProblemDetails {
        switch refusal {
        case .contradictsToken(let name):
            Problem.forbidden(
                "attribute-contradicts-token",
                "The attribute `\(name.prefix(64))` is not what the token vouches for.")
        case .notVouched(let name):
            Problem.forbidden(
                "attribute-not-vouched",
                "The attribute `\(name.prefix(64))` must come from the client's token or its "
                    + "backend; the catalog's selfDeclared does not list it.")
        }
    }

    /// Removes a client; its streams end. Throws when it is not registered.
    func remove(_ key: ClientKey) async throws {
        let existed = try await write(cost: 256) { transaction in
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
            let count = try await write(cost: 256 * batch) { transaction in
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
        let count = try await write(cost: 256 * batch) { transaction in
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
        _ = try await write(cost: 2048) { transaction in
            guard var stored = try self.storedRegistration(key, &transaction) else { return }
            stored.registration.delivery.removeAll { $0 == address }
            for index in stored.registration.controls.indices
            where stored.registration.controls[index].delivery == address {
                stored.registration.controls[index].delivery = nil
            }
            try transaction.putRegistration(
                app: key.app, client: key.client, payload: stored.payload,
                attributes: stored.attributes, updatedAt: self.desk.wallMilliseconds())
            let record = stored.record(of: key.client)
            transaction.afterCommit {
                self.registry.put(record, app: key.app, at: self.store.head)
                self.handOver([.registered(record, app: key.app, taken: { _ in })])
            }
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
            let answer = try await loops[0].loop.submit { [loops] in
                loops[0].owedSets(of: record, app: key.app)
            }.get()
            guard let (owed, position) = answer else { continue }
            let quiet = record.confirmed.filter { $0.value < sequence && !owed.contains($0.key) }
            if !quiet.isEmpty { try await confirm(key, quiet.keys.sorted(), upTo: position) }
        }
    }

    /// Notes that a client has the recommendation sets of these kinds as of `sequence`.
    func confirm(
        _ key: ClientKey, _ recommendations: [String], upTo sequence: UInt64
    ) async throws {
        let taken = ShardReceipts(count: loopCount)
        let changed = try await write(cost: 2048) { transaction in
            guard var stored = try self.storedRegistration(key, &transaction) else {
                throw Problem.unknownClient
            }
            let kinds = recommendations.filter { (stored.confirmed[$0] ?? sequence) < sequence }
            guard !kinds.isEmpty else { return false }
            for kind in kinds { stored.confirmed[kind] = sequence }
            try transaction.putRegistration(
                app: key.app, client: key.client, payload: stored.payload,
                attributes: stored.attributes, updatedAt: self.desk.wallMilliseconds())
            let record = stored.record(of: key.client)
            transaction.afterCommit {
                self.registry.put(record, app: key.app, at: self.store.head)
                self.handOver([
                    .confirmed(record, app: key.app, taken: { taken.took(at: $0) })
                ])
            }
            return true
        }
        if changed { _ = await taken.lowestPosition() }
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
