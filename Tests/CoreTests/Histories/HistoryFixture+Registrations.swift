import GatewayTestSupport
import WidgetModel

@testable import GatewayCore

/// Registrations that come, go and move to other accounts, at every step of opening a stream.
extension HistoryFixture {
    // MARK: Registering

    func register(_ app: String, _ client: String) throws {
        let old = records[client]
        var origins = old?.origins ?? ClientAttributes()
        if old == nil || random.happens(20) {
            let attributes = RandomInputs.attributes(&random)
            switch random.below(4) {
            case 0: origins = ClientAttributes(backend: attributes)
            case 1: origins = ClientAttributes(token: attributes)
            default: origins = ClientAttributes(own: attributes)
            }
        }
        var registration = RandomInputs.registration(attributes: origins.inForce, &random)
        if let old, random.happens(40) {
            // Some widgets stay.
            registration.widgets += old.registration.widgets.prefix(2)
        }
        // An unchanged set stays confirmed as it was; a changed one was built just now.
        let set = registration.recommendations
        var confirmed = old?.confirmed ?? [:]
        if old == nil || set != old?.registration.recommendations { confirmed["k0"] = head }
        put(
            ClientRecord(
                client: client, registration: registration, attributes: origins,
                confirmed: confirmed), app: app)
    }

    /// Gives the client another account, through its backend or through its next token.
    func move(_ index: Int) throws {
        let receiver = receivers[index]
        guard let record = records[receiver.client] else { return }
        let attributes = RandomInputs.attributes(&random)
        if random.happens(50) {
            note("a backend moves \(receiver.client)")
            put(
                record.with(
                    ClientAttributes(statedByBackend: attributes, before: record.origins)),
                app: receiver.app)
        } else {
            receivers[index].claims = attributes
            present(index)
        }
    }

    /// Registers the attributes that the program's token vouches for, if they are new.
    private func present(_ index: Int) {
        let receiver = receivers[index]
        guard let record = records[receiver.client], record.origins.token != receiver.claims,
            let origins = try? record.origins.presenting(receiver.claims)
        else { return }
        note("\(receiver.client) presents \(receiver.claims)")
        put(record.with(origins), app: receiver.app)
    }

    private func put(_ record: ClientRecord, app: String) {
        let client = record.client
        let old = records[client]
        records[client] = record
        messages.append(.registered(record, app: app))
        let holdings = Holding.all(of: record.registration)
        note(
            "\(head) \(client) registers \(holdings) \(record.attributes["h"] ?? []) "
                + "set \(record.confirmed["k0"] ?? 0)")
        for index in receivers.indices where receivers[index].client == client {
            if receivers[index].request != nil { checked("registered while opening") }
            if receivers[index].isIdle { checked("registered between streams") }
            // Newly configured widgets were just built, and with another account all of them were.
            let kept = Set(old.map { Holding.all(of: $0.registration) } ?? [])
            let held = Set(holdings)
            let isSameSet =
                record.registration.recommendations == old?.registration.recommendations
            receivers[index].dirty = receivers[index].dirty.filter { holding, _ in
                record.attributes == old?.attributes && held.contains(holding)
                    && kept.contains(holding) && (holding.form != .set || isSameSet)
            }
        }
    }

    func remove(_ index: Int) throws {
        let receiver = receivers[index]
        guard records.removeValue(forKey: receiver.client) != nil else { return }
        messages.append(.removed(client: receiver.client, app: receiver.app))
        note("\(receiver.client) is removed")
        for index in receivers.indices where receivers[index].client == receiver.client {
            if receivers[index].request != nil { checked("removed while opening") }
            if receivers[index].isIdle { checked("removed between streams") }
            receivers[index].dirty = [:]
        }
    }

    /// Lets an unknown client register and build everything, or give up for now.
    func introduce(_ index: Int) throws {
        guard random.happens(60) else { return }
        let receiver = receivers[index]
        try register(receiver.app, receiver.client)
        for shard in shards.indices { try takeMessages(shard, messages.count) }
        if random.happens(50) { receivers[index].cursor = cursor(head) }
    }

    func acknowledge(_ index: Int) throws {
        let receiver = receivers[index]
        guard let record = records[receiver.client], let cursor = receiver.cursor,
            case .after(let sequence) = try resume(cursor)
        else { return }
        var confirmed = record.confirmed
        confirmed["k0"] = max(confirmed["k0"] ?? 0, sequence)
        let acknowledged = record.with(confirmed: confirmed)
        records[receiver.client] = acknowledged
        messages.append(.confirmed(acknowledged, app: receiver.app))
        note("\(receiver.client) acknowledges its set at \(sequence)")
    }

    /// Checks that the streams of a removed client end, each exactly once.
    func end(_ client: String, _ app: String, _ shard: Int, _ seen: Int) throws {
        let known = shards[shard].output.ended.count
        if sabotage != .keepsARemovedClient { shards[shard].removed(client: client, app: app) }
        let ended = shards[shard].output.ended.dropFirst(known)
        let expected = streams.values.filter {
            $0.shard == shard && $0.record.client == client && !$0.isEnded
        }.map(\.id)
        checked("removed")
        guard ended.count == expected.count, Set(ended) == Set(expected) else {
            throw violation("of \(client) \(ended) end, not \(expected)")
        }
        try observe(shard, .removal(client: client, app: app), seen)
    }

    // MARK: The opening of a stream

    /// Reads and admits a request for a stream, which then waits for its shard.
    func ask(_ index: Int, on shard: Int) throws {
        if records[receivers[index].client] == nil { return try introduce(index) }
        let point = try resume(random.happens(95) ? receivers[index].cursor : nil)
        present(index)
        let receiver = receivers[index]
        guard let record = records[receiver.client] else { return }
        note(" \(receiver.client) asks shard \(shard) for a stream since \(point)")
        receivers[index].request = StreamRequest(
            shard: shard, record: record,
            terms: RegistrationTerms(vouched: receiver.claims), point: point, epoch: epoch)
    }

    /// Lets the shard open the requested stream with the registration that is current by then.
    func admit(_ index: Int) throws {
        let receiver = receivers[index]
        guard let request = receiver.request else { return }
        receivers[index].request = nil
        let inForce = records[receiver.client]
        guard try isAccepted(request, inForce) else {
            note(" \(receiver.client) is refused")
            // The program has to get another token.
            receivers[index].claims = inForce?.origins.token ?? [:]
            return
        }
        guard let inForce else { return }
        if inForce !== request.record { checked("opened by another") }
        let (shard, point) = (request.shard, epoch == request.epoch ? request.point : .everything)
        let seen = shards[shard].output.deliveries.count
        guard
            let id = shards[shard].open(
                sabotage == .opensByWhatWasRead ? request.record : inForce, app: receiver.app,
                since: point, kinds: receiver.kinds)
        else { return }
        let start: UInt64 = if case .after(let sequence) = point { sequence } else { 0 }
        let key = nextStream
        nextStream += 1
        note(" \(receiver.client) opens stream \(key) on shard \(shard) since \(point)")
        streams[key] = OpenStream(
            id: id, shard: shard, receiver: index, record: inForce, lastID: start,
            checkedUpTo: start, covered: start)
        receivers[index].stream = key
        try observe(shard, .opening(key, point), seen)
    }

    /// Whether a request is granted. The answer is compared with the definition.
    private func isAccepted(_ request: StreamRequest, _ inForce: ClientRecord?) throws -> Bool {
        let expected = inForce.map { record in
            request.terms.vouched.allSatisfy { name, values in
                guard let known = record.origins.backend[name] ?? record.origins.own[name] else {
                    return true
                }
                return Set(known) == Set(values)
            }
        }
        checked(expected == true ? "accepted" : "refused")
        let isAccepted = (try? request.terms.accept(inForce)) != nil
        guard isAccepted == (expected ?? false) else {
            throw violation("the request is granted: \(isAccepted)")
        }
        return isAccepted
    }
}

extension ClientRecord {
    /// Returns the same registration with other attributes.
    func with(_ origins: ClientAttributes) -> ClientRecord {
        ClientRecord(
            client: client, registration: registration, attributes: origins,
            confirmed: confirmed)
    }
}
