/// Decides writes in order by what the log has, and collects the call with what is new.
struct BatchBuilder {
    /// The decision about one write, before the first sequence of the batch is known.
    enum Decision: Sendable {
        case reused([Int])
        case conflict
        /// For each change its place in the batch, or the sequence of the event that it repeats.
        case changes([Place])
        /// The place of the record, and the new revision of a registration.
        case record(Int32, revision: Int64)
    }

    enum Place: Sendable {
        case fresh(Int32)
        case known(Int64)
    }

    private let probe: ProbeResult
    /// The revision of every registration of this batch. Higher than that of any row: a row's was
    /// made at a head before its record, and this one is made at a head that includes the record.
    /// The random bits tell it from that of a lost tail, whose sequences are used again.
    private let revision: Int64
    private(set) var call: AppendCall
    /// The events that this batch itself brings, with place and digest.
    private var events: [UInt128: (place: Int32, digest: Int64)] = [:]
    private var clients: Set<RegistrationKey> = []
    private var tokens: Set<UInt128> = []
    private var apps: Set<String> = []
    /// The apps whose catalog this batch replaces.
    private var catalogs: Set<String> = []
    /// The apps that this batch removes.
    private var removals: Set<String> = []

    init(_ probe: ProbeResult, generation: Int64, using generator: inout some RandomNumberGenerator)
    {
        self.probe = probe
        revision =
            (probe.head + 1) << 16 | Int64(UInt16.random(in: 0...UInt16.max, using: &generator))
        call = AppendCall(
            generation: generation, batch: Int64(bitPattern: generator.next() >> 1),
            link: UInt128(generator.next()) << 64 | UInt128(generator.next()), probed: probe.head)
    }

    /// Decides a write, and adds it to the call if there is something to write.
    mutating func add(_ write: LogWrite) -> Decision {
        let app = probe.apps[write.app] ?? ProbeResult.App()
        guard app.removal == write.removal, !removals.contains(write.app) else { return .conflict }
        switch write.content {
        case .changes(let changes): return add(changes, of: write.app)
        case .registration(let registration): return add(registration, removal: app.removal)
        case .catalog(let payload, let replaced):
            guard app.newest == replaced, catalogs.insert(write.app).inserted else {
                return .conflict
            }
            return appendCatalog(payload, .catalog(payload: payload), of: write.app)
        case .removal(let replaced):
            // Only a catalog can be removed.
            guard app.newest == replaced, replaced > app.removal,
                catalogs.insert(write.app).inserted
            else { return .conflict }
            removals.insert(write.app)
            return appendCatalog(nil, .removal, of: write.app)
        case .reload(let scope):
            return .record(append(LogRecord(app: write.app, .reload(scope: scope))), revision: 0)
        }
    }

    // MARK: Changes

    private mutating func add(_ changes: [LogWrite.Change], of app: String) -> Decision {
        var places: [Place] = []
        var reused: [Int] = []
        var added: [UInt128: (place: Int32, digest: Int64)] = [:]
        var count = call.count
        for (index, change) in changes.enumerated() {
            if let key = change.key, let event = probe.events[key] {
                places.append(.known(event.sequence))
                if event.digest != change.digest { reused.append(index) }
            } else if let key = change.key, let earlier = events[key] ?? added[key] {
                places.append(.fresh(earlier.place))
                if earlier.digest != change.digest { reused.append(index) }
            } else {
                count += 1
                let place = Int32(clamping: count)
                places.append(.fresh(place))
                if let key = change.key { added[key] = (place, change.digest) }
            }
        }
        guard reused.isEmpty else { return .reused(reused) }
        events.merge(added) { first, _ in first }
        for (change, place) in zip(changes, places) {
            guard case .fresh(let place) = place, place > call.count else { continue }
            append(change.record, of: app)
            guard let key = change.key else { continue }
            call.keys.append(key)
            call.digests.append(change.digest)
            call.places.append(place)
        }
        return .changes(places)
    }

    // MARK: Registrations

    private mutating func add(_ write: RegistrationWrite, removal: Int64) -> Decision {
        let present = probe.revisions[write.key] ?? 0
        let claimed = Set(write.content?.tokens ?? []).filter { probe.owners[$0] != write.key }
        // A removal needs a row; a second write of the client, or of the address, was not decided
        // from the first.
        guard write.base == present, write.content != nil || present > 0,
            !clients.contains(write.key), tokens.isDisjoint(with: claimed)
        else { return .conflict }
        clients.insert(write.key)
        tokens.formUnion(claimed)
        let (key, client) = (write.key, write.key.client)
        let content: LogRecord.Content =
            if let row = write.content {
                .registration(
                    LogRecord.Registration(
                        part: key.part, client: client, revision: revision, digest: row.digest))
            } else {
                .registrationRemoved(part: key.part, client: client, revision: revision)
            }
        let place = append(LogRecord(app: key.app, content))
        call.registrations.append(
            AppendCall.Registration(
                key: key, base: write.base, revision: revision, removal: removal,
                content: write.content))
        let number = Int32(clamping: call.registrations.count)
        for token in claimed.sorted() {
            let owner = probe.owners[token]
            call.claims.append(AppendCall.Claim(token: token, place: number, owner: owner))
            guard let owner else { continue }
            append(
                LogRecord(
                    app: owner.app, .addressesLost(part: owner.part, client: owner.client)))
        }
        return .record(place, revision: revision)
    }

    // MARK: Records

    private mutating func appendCatalog(
        _ payload: [UInt8]?, _ content: LogRecord.Content, of app: String
    ) -> Decision {
        let place = append(LogRecord(app: app, content))
        call.catalogs.append(AppendCall.Catalog(app: app, place: place, payload: payload))
        return .record(place, revision: 0)
    }

    /// Appends a record and returns its place.
    @discardableResult
    private mutating func append(_ record: LogRecord) -> Int32 {
        append(record.encoded, of: record.app)
        return Int32(clamping: call.count)
    }

    private mutating func append(_ record: [UInt8], of app: String) {
        call.count += 1
        call.records += record
        if apps.insert(app).inserted { call.apps.append(app) }
    }
}
