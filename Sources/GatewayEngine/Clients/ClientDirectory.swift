import CatalogModel
import GatewayCore
import GatewayOperations
import Synchronization
import WidgetModel

/// Registers, replaces and removes clients, and records their acknowledgements: returns when the
/// change is on disk.
package final class ClientDirectory: Sendable {
    let log: EngineLog
    let catalogs: AppCatalogs
    let registry: Registry
    let accepted: AcceptedChanges
    let loops: ShardLoops
    /// Receives acknowledgements; `nil` where nothing is pushed.
    let push: PushLoop?
    let cursors: CursorCodec
    let documents: DocumentWork
    let metrics: GatewayMetrics
    let tracing: GatewayTracing?
    let clock: GatewayClock
    /// `nil` if no other gateway shares the log.
    private let leader: (any LogLeader)?
    let locks = RegistrationLocks()
    private let guards = Mutex((webhooks: AddressGuard(), services: AddressGuard()))
    /// The maximum number of clients whose new push addresses are counted.
    private static let addressBucketsMax = 65_536
    /// The new push addresses of each client. Made-up addresses cost the standing that the app's
    /// team has with the push service, and those of others could be claimed.
    private let newAddresses: Mutex<BucketTable<ClientKey>>

    init(
        log: EngineLog, catalogs: AppCatalogs, registry: Registry,
        accepted: AcceptedChanges, loops: ShardLoops, push: PushLoop?, cursors: CursorCodec,
        documents: DocumentWork, pushAddresses: TokenRate, metrics: GatewayMetrics,
        tracing: GatewayTracing?, clock: GatewayClock, leader: (any LogLeader)? = nil
    ) {
        newAddresses = Mutex(
            BucketTable(rate: pushAddresses, slotsMax: Self.addressBucketsMax))
        self.log = log
        self.catalogs = catalogs
        self.registry = registry
        self.accepted = accepted
        self.loops = loops
        self.push = push
        self.cursors = cursors
        self.documents = documents
        self.metrics = metrics
        self.tracing = tracing
        self.clock = clock
        self.leader = leader
    }

    // MARK: Lookup

    /// Returns whether this gateway knows the client's registration without asking the leader: it
    /// leads, or its copy has the digest that the client states, if any.
    package func isCurrent(_ key: ClientKey, digest: String?) -> Bool {
        guard let leader, !leader.isHere else { return true }
        guard let record = registry.record(key) else { return false }
        return digest == nil || digest == record.digest
    }

    /// Returns the registration of a client in force; `nil` if there is none.
    ///
    /// - Parameter digest: The digest that the client states.
    /// - Throws: ``EngineError/cluster(_:)`` if it cannot be read now.
    package func record(
        _ key: ClientKey, digest: String? = nil
    ) async throws -> ClientRecord? {
        if !isCurrent(key, digest: digest) { _ = try await log.barrier() }
        return registry.record(key)
    }

    // MARK: Registration

    /// Permits new webhooks, and browsers' push services, to have addresses in ranges of their own
    /// in addition to public ones.
    package func permit(webhooks: [AddressRange], services: [AddressRange] = []) {
        guards.withLock {
            $0 = (AddressGuard(allowed: webhooks), AddressGuard(allowed: services))
        }
    }

    /// Returns the faults of a catalog's new sources of content that can never be asked.
    package func contentFaults(of catalog: Catalog, replacing previous: Catalog?) -> Faults {
        let addressGuard = guards.withLock { $0.webhooks }
        let known = Set((previous?.activities ?? []).map(\.content.url))
        var faults = Faults()
        for (index, activity) in catalog.activities.enumerated() {
            let url = activity.content.url
            guard !known.contains(url), let objection = WebhookObjection(to: url, by: addressGuard)
            else { continue }
            faults.add("activities[\(index)].content.url", objection.message())
        }
        return faults
    }

    package struct RegistrationOutcome: Sendable {
        package let isNew: Bool
        /// The lowest position at which a shard applied it.
        package let position: UInt64
        package let digest: String
        /// Whether a webhook is among its addresses.
        package let hasWebhook: Bool
        /// At most ``Faults/keptMax`` of them are listed.
        package let warnings: Faults
    }

    /// Registers a client. Returns when it is on disk and every shard has applied it.
    ///
    /// - Parameter size: The size of the document behind `input`, in bytes; 0 for a small one.
    package func register(
        _ key: ClientKey, _ input: RegistrationInput, size: Int = 0, by registrar: Registrar
    ) async throws -> RegistrationOutcome {
        for cursor in input.cursors.prefix(catalogs.limits.registrationWidgetsMax) {
            try await cursors.find(cursor)
        }
        // Another attempt, after a change in between, costs nothing.
        var isCounted = false
        let stored = try await replaceRegistration(of: key, documentBytes: size, isSeen: true) {
            base in
            let made = try self.registration(of: key, from: input, by: registrar, replacing: base)
            if !isCounted {
                try countNewAddresses(of: key, made.record.registration, replacing: base.stored)
                isCounted = true
            }
            return made
        }
        guard let stored else { throw EngineError.unknownClient }
        let record = stored.replacement.record
        return RegistrationOutcome(
            isNew: stored.isNew, position: stored.position,
            digest: record.digest,
            hasWebhook: record.registration.delivery.contains(where: \.isWebhook),
            warnings: stored.replacement.warnings)
    }

    /// Counts the push addresses that a client did not have before.
    ///
    /// - Throws: ``EngineError/rate(_:_:retryAfter:)`` if it had too many new ones.
    private func countNewAddresses(
        of key: ClientKey, _ registration: ClientRegistration,
        replacing previous: StoredRegistration?
    ) throws(EngineError) {
        let known = previous?.registration.pushAddresses ?? []
        let count = registration.pushAddresses.subtracting(known).count
        guard count > 0 else { return }
        let now = clock.now()
        let (verdict, rate) = newAddresses.withLock {
            ($0.take(Int64(count), from: key, now: now), $0.rate)
        }
        guard case .refused(let milliseconds) = verdict else { return }
        metrics.requestRefused(.pushAddresses)
        throw .rate(.pushAddresses, rate, retryAfter: milliseconds)
    }

    /// Makes a registration from a document or a patch.
    private func registration(
        of key: ClientKey, from input: RegistrationInput, by registrar: Registrar,
        replacing base: RegistrationBase
    ) throws -> RegistrationReplacement {
        guard let ruleSet = base.ruleSet else { throw EngineError.unknownApp }
        let previous = base.stored
        let document = try input.document(by: registrar, replacing: previous)
        let reading: ClientRegistration.Reading
        do throws(Faults) {
            reading = try ClientRegistration.read(document, limits: catalogs.limits)
        } catch {
            throw EngineError.invalid(error)
        }
        var stored = StoredRegistration(registration: reading.registration)
        stored.attributes = try input.attributes(
            stated: reading.registration.attributes, by: registrar,
            replacing: previous?.attributes ?? ClientAttributes(),
            selfDeclared: ruleSet.catalog.selfDeclared)
        let written = stored.registration.json(maskingTokens: false)
        stored.digest = RegistrationDigest.text(of: written, stored.attributes)
        try registrar.checkWebhooks(of: stored.registration, replacing: previous?.registration)
        let (webhooks, services) = guards.withLock { $0 }
        let faults = stored.registration.urlFaults(
            replacing: previous?.registration, webhooks: webhooks, services: services)
        guard faults.isEmpty else { throw EngineError.invalid(faults) }
        // Entries between now and the commit count as missed, which reloads too much but never too
        // little.
        let head = log.head
        for set in stored.registration.recommendations {
            stored.confirmed[set.kind] = confirmedPosition(of: set, previous, head: head)
        }
        stored.since = previous?.since ?? head
        stored.addressedAt =
            input.namesAddresses ? clock.wallMilliseconds() : previous?.addressedAt ?? 0
        let record = stored.record(of: key.client)
        try check(record, by: ruleSet)
        var warnings = reading.warnings
        ruleSet.addWarnings(about: record, to: &warnings)
        return RegistrationReplacement(stored, record, document: written, warnings: warnings)
    }

    private func check(_ record: ClientRecord, by ruleSet: RuleSet) throws(EngineError) {
        let faults = ruleSet.faults(in: record, limits: catalogs.limits)
        guard faults.isEmpty else { throw .invalid(faults) }
    }

    /// Returns the position up to which a set is built: that of its cursor, or the one confirmed
    /// since for the same set; without cursor the one confirmed before, or the present one.
    private func confirmedPosition(
        of set: RecommendationSet, _ previous: StoredRegistration?, head: UInt64
    ) -> UInt64 {
        let confirmed = previous?.confirmed[set.kind]
        guard let builtAt = set.builtAt else { return confirmed ?? head }
        // Of other items that were built at the same cursor nothing is confirmed since.
        let isSame = previous?.registration.recommendations.contains(set) == true
        let least = isSame ? confirmed ?? 0 : 0
        if case .after(let sequence) = cursors.judge(builtAt).point { return max(sequence, least) }
        return least
    }

    /// Returns the id of a client's streams for all kinds: everything up to it was sent on each
    /// that takes data.
    package func sent(to key: ClientKey) async throws -> UInt64 {
        var id = UInt64.max
        for stream in registry.streams(of: key) where !stream.isPoll {
            id = min(id, try await loops.all[Int(stream.loop)].sent(on: stream.id))
        }
        guard let leader, let nodes = registry.client(key)?.nodes, !nodes.isEmpty else { return id }
        for node in nodes {
            for stream in await leader.streams(of: [key], at: node).joined()
            where !stream.isLagging && stream.kinds == nil {
                id = min(id, stream.watermark)
            }
        }
        return id
    }

    /// Replaces the attributes of the client's previous token by those that its current token
    /// vouches for. Returns when they are on disk and every shard has applied them.
    ///
    /// - Returns: The registration in force.
    /// - Throws: ``EngineError/attributes(_:)`` if they contradict the registration,
    ///   ``EngineError/unknownClient`` if there is none, ``EngineError/invalid(_:)`` if the client
    ///   would depend on too much.
    package func present(
        _ claims: [String: [String]], of key: ClientKey
    ) async throws -> ClientRecord {
        if let leader, !leader.isHere {
            try await leader.present(claims, of: key)
            guard let record = registry.record(key) else { throw EngineError.unknownClient }
            return record
        }
        var inForce: ClientRecord?
        let stored = try await replaceRegistration(of: key) { base in
            guard let ruleSet = base.ruleSet else { throw EngineError.unknownApp }
            guard var stored = base.stored else { throw EngineError.unknownClient }
            guard !stored.attributes.token.hasSameBytes(as: claims) else {
                inForce = stored.record(of: key.client)
                return nil
            }
            do throws(ClientAttributes.Rejection) {
                stored.attributes = try stored.attributes.presenting(claims)
            } catch {
                throw EngineError.attributes(error)
            }
            let record = stored.record(of: key.client)
            try check(record, by: ruleSet)
            return RegistrationReplacement(stored, record)
        }
        guard let record = stored?.replacement.record ?? inForce else {
            throw EngineError.unknownClient
        }
        return record
    }

    // MARK: Removal

    /// Removes a client; its streams end.
    ///
    /// - Throws: ``EngineError/unknownClient`` when it is not registered.
    package func remove(_ key: ClientKey) async throws {
        guard try await log.remove(key) else { throw EngineError.unknownClient }
    }

    /// The maximum number of clients removed in one transaction.
    private static let removedMax = 500

    /// Removes every client with an attribute; returns their number.
    package func erase(app: String, attribute: (name: String, value: String)) async throws -> Int {
        var erased = 0
        while true {
            let count = try await log.removeClients(
                of: app, with: attribute, limit: Self.removedMax)
            erased += count
            if count < Self.removedMax { return erased }
        }
    }

    /// Removes clients unseen since a time, ms since 1970; returns whether there may be more.
    package func removeUnseen(since: Int64) async throws -> Bool {
        try await log.removeClients(unseenSince: since, limit: Self.removedMax)
            == Self.removedMax
    }

    /// Removes an address from a client's registration, if it is still there: its token is dead or
    /// belongs to another client.
    package func drop(_ address: DeliveryAddress, of key: ClientKey) async throws {
        _ = try await replaceRegistration(of: key) { base in
            guard var stored = base.stored else { return nil }
            stored.remove(address)
            guard stored.registration != base.stored?.registration else { return nil }
            return RegistrationReplacement(stored, stored.record(of: key.client))
        }
    }
}
