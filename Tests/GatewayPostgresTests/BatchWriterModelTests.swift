import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

@Suite struct BatchWriterModelTests {
    @Test(arguments: 0..<100)
    func nothingIsLostWrittenTwiceOrFalselyReported(seed: Int) throws {
        var world = WriterWorld(seed: UInt64(seed))
        for _ in 0..<1_200 { world.step() }
        world.settle()
        try world.check()
    }

    @Test func `a position that is reached before the answer is not compared`() {
        var random = SplitMix64(seed: 1)
        var writer = BatchWriter(.primary, position: LogPosition(last: 3, chain: 8), at: 0)
        let settings = Durability(standbyNames: "", isFlushed: true, writesFullPages: true)
        let identity = ServerIdentity(
            version: ClusterSchema.version, logID: 1, chain: 8, durability: settings, startedAt: 1)
        _ = writer.tick(at: 0, using: &random)
        _ = writer.receive(.connected, at: 1, using: &random)
        writer.advance(to: LogPosition(last: 4, chain: 9))
        let actions = writer.receive(
            .answered(.success(.identified(identity))), at: 1, using: &random)
        #expect(actions == [.send([.fence])])
    }

    @Test func aRacedBatchIsRepeatedWithoutNewWrites() {
        var random = SplitMix64(seed: 1)
        var writer = BatchWriter(.primary, position: nil, at: 0)
        let settings = Durability(standbyNames: "", isFlushed: true, writesFullPages: true)
        let identity = ServerIdentity(
            version: ClusterSchema.version, logID: 1, chain: nil, durability: settings, startedAt: 1
        )
        _ = writer.tick(at: 0, using: &random)
        func receive(_ event: BatchWriter.Event) -> [BatchWriter.Action] {
            writer.receive(event, at: 1, using: &random)
        }
        _ = receive(.connected)
        _ = receive(.answered(.success(.identified(identity))))
        _ = receive(.answered(.success(.fenced(generation: 1))))
        _ = receive(.answered(.success(.deleted(hasMore: false))))
        func submit(_ key: UInt128) -> [BatchWriter.Action] {
            let change = LogWrite.Change(key: key, digest: 1, record: [])
            return writer.submit(
                LogWrite(ticket: UInt64(key), app: "a", .changes([change])), at: 1)
        }
        func probe(_ keys: UInt128...) -> [BatchWriter.Action] {
            var probe = Probe()
            (probe.events, probe.apps) = (keys, ["a"])
            return [.send([.probe(probe)])]
        }
        #expect(submit(1) == probe(1))
        #expect(submit(2) == [])
        _ = receive(.answered(.success(.probed(ProbeResult(head: 0)))))
        #expect(receive(.answered(.failure(.raced))) == [])
        #expect(receive(.answered(.success(.durability(settings)))) == probe(1))
        _ = receive(.answered(.success(.probed(ProbeResult(head: 1)))))
        _ = receive(.answered(.success(.appended(LogPosition(last: 2, chain: 2)))))
        #expect(
            receive(.answered(.success(.durability(settings))))
                == [.complete(ticket: 1, .accepted([.appended(2)]))] + probe(2))
    }

    /// Shows that the judge sees writes that were decided from what is not in force any more.
    @Test(arguments: [true, false])
    func aServerThatComparesNothingIsFoundOut(ignoresRevisions: Bool) {
        var found = 0
        for seed in 0..<60 where found < 3 {
            var world = WriterWorld(seed: UInt64(seed))
            world.server.ignoresRevisions = ignoresRevisions
            world.server.ignoresCatalogs = !ignoresRevisions
            for _ in 0..<1_200 { world.step() }
            world.settle()
            if (try? world.check()) == nil { found += 1 }
        }
        #expect(found == 3)
    }

    /// Shows that the runs above contain what they are for.
    @Test func theModelTakesEveryCourse() {
        var (batches, recovered, raced) = (0, 0, 0)
        var kinds: Set<String> = []
        for seed in 0..<40 {
            var world = WriterWorld(seed: UInt64(seed))
            for _ in 0..<1_200 { world.step() }
            world.settle()
            kinds.formUnion(world.outcomeKinds)
            batches += world.server.rows.count
            recovered += world.recoveredCount
            raced += world.racedCount
        }
        #expect(batches > 500)
        #expect(recovered > 10)
        #expect(raced > 10)
        #expect(
            kinds == [
                "accepted", "duplicate", "reused", "refused", "unknown", "conflict", "put",
                "removed", "catalog", "app", "reload", "rows", "addresses",
            ])
    }
}

/// Three writers before one ``ScriptedServer``, with connections that lose messages anywhere.
private struct WriterWorld {
    private struct Node {
        var writer: BatchWriter
        /// Whether the connection is open, and what is on its way.
        var isOpen = false
        var requests: [WriteRequest] = []
        var answers: [Result<WriteAnswer, PostgresError>] = []
        var waitsForStandby = false
    }

    private var random: SplitMix64
    private var now: Int64 = 0
    var server = ScriptedServer()
    private var nodes: [Node] = []
    /// Requests of connections that ended, which the server may still receive.
    private var late: [(node: Int, request: WriteRequest)] = []
    private var writes: [UInt64: LogWrite] = [:]
    private var readings: [UInt64: RowOutcome] = [:]
    private var readKeys: [UInt64: [RegistrationKey]] = [:]
    /// The last rows that each node has read, to decide writes from.
    private var bases: [[RegistrationKey: RegistrationRow]] = [[:], [:], [:]]
    private var outcomes: [UInt64: WriteOutcome] = [:]
    private var nextTicket: UInt64 = 1
    private var faults: [String] = []
    private var isFaulty = true
    /// The answers that a batch with an unknown outcome is in the log.
    private(set) var recoveredCount = 0
    /// The refusals of a batch because another node wrote the same event, client or catalog.
    private(set) var racedCount = 0

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        var limits = BatchLimits()
        limits.changes = 4
        limits.registrations = 2
        for _ in 0..<3 {
            nodes.append(
                Node(
                    writer: BatchWriter(
                        .quorum, position: LogPosition(last: 0, chain: 1), limits: limits, at: 0)))
        }
    }

    // MARK: Steps

    mutating func step() {
        let node = random.below(nodes.count)
        switch random.below(100) {
        case 0..<7: submit(to: node)
        case 7..<14: read(at: node)
        case 14..<25: submitRows(to: node)
        case 25..<56: deliverRequest(of: node)
        case 56..<82: deliverAnswer(to: node)
        case 82..<90: advanceTime(by: Int64(random.below(random.happens(10) ? 2_500 : 60)))
        case 90..<93: releaseWaiting()
        case 93 where random.happens(50): cut(node)
        case 94:
            // The setting is emptied while an append waits.
            guard random.happens(20), server.waiting != nil else { break }
            server.hasQuorum = false
            releaseWaiting()
        case 95: executeLate()
        case 96 where random.happens(30):
            server.restart()
            cutAll()
        case 97 where random.happens(30):
            server.promote(keepsWaiting: random.happens(50))
            cutAll()
        case 98 where random.happens(60):
            server.hasQuorum = false
            releaseWaiting()
        default: if random.happens(60) { server.restoreQuorum() }
        }
    }

    /// Ends all faults and lets everything come to an end; a last post to each node is accepted.
    mutating func settle() {
        isFaulty = false
        server.restoreQuorum()
        while !late.isEmpty { executeLate() }
        run(milliseconds: 20_000)
        let last = nodes.indices.map { submit(to: $0) }
        run(milliseconds: 2_000)
        for ticket in last {
            guard case .accepted = outcomes[ticket] else {
                faults.append(
                    "a post after all faults: \(outcomes[ticket].map { "\($0)" } ?? "none")")
                continue
            }
        }
    }

    private mutating func run(milliseconds: Int) {
        for _ in 0..<milliseconds / 10 {
            releaseWaiting()
            for node in nodes.indices {
                while !nodes[node].requests.isEmpty || !nodes[node].answers.isEmpty {
                    deliverRequest(of: node)
                    deliverAnswer(to: node)
                }
            }
            advanceTime(by: 10)
        }
    }

    @discardableResult
    private mutating func submit(to node: Int) -> UInt64 {
        let ticket = nextTicket
        nextTicket += 1
        let changes = (0..<1 + random.below(3)).map { _ in
            // Neighbouring posts have the same few keys, some of them with other data.
            let recent = UInt128(ticket / 8) << 8 | UInt128(random.below(4))
            let key = random.happens(70) ? recent : nil
            return LogWrite.Change(
                key: isFaulty ? key : nil, digest: random.happens(95) ? 1 : 2,
                record: LogRecord(
                    app: app(ticket),
                    .change(
                        event: nil,
                        payload: [
                            UInt8(truncatingIfNeeded: ticket),
                            UInt8(truncatingIfNeeded: ticket >> 8),
                        ])
                ).encoded)
        }
        // After a removal events have other keys; a node may not know of it yet.
        submit(.changes(changes), ticket: ticket, app: app(ticket), to: node)
        return ticket
    }

    private func app(_ number: UInt64) -> String { "a\(number % 2)" }

    /// Submits anything but changes, mostly decided by what the server shows.
    private mutating func submitRows(to node: Int) {
        let ticket = nextTicket
        nextTicket += 1
        let app = app(UInt64(random.below(2)))
        let newest = random.happens(80) ? newest(of: app).newest : 0
        let bytes = [UInt8(truncatingIfNeeded: ticket), UInt8(truncatingIfNeeded: ticket >> 8)]
        switch random.below(12) {
        case 0: submit(.reload(scope: bytes), ticket, app, to: node)
        case 1, 2:
            submit(.catalog(payload: bytes, replacing: newest), ticket, app, to: node)
        case 3 where random.happens(40): submit(.removal(replacing: newest), ticket, app, to: node)
        default:
            guard
                let key = bases[node].keys.sorted(by: { $0.client < $1.client }).randomElement(
                    using: &random)
            else { return }
            let content = RegistrationContent(
                digest: Int64(ticket),
                tokens: (0..<UInt128(3)).filter { _ in random.happens(30) }, payload: [1])
            let write = RegistrationWrite(
                key: key, base: bases[node][key]?.revision ?? 0,
                content: random.happens(75) ? content : nil)
            submit(.registration(write), ticket, key.app, to: node)
        }
    }

    private func newest(of app: String) -> ProbeResult.App {
        server.tables.apps[app] ?? ProbeResult.App()
    }

    private mutating func submit(
        _ content: LogWrite.Content, _ ticket: UInt64, _ app: String, to node: Int
    ) {
        submit(content, ticket: ticket, app: app, to: node)
    }

    private mutating func submit(
        _ content: LogWrite.Content, ticket: UInt64, app: String, to node: Int
    ) {
        let removal = !isFaulty || random.happens(90) ? newest(of: app).removal : 0
        let write = LogWrite(ticket: ticket, app: app, removal: removal, content)
        writes[ticket] = write
        perform(nodes[node].writer.submit(write, at: now), of: node)
    }

    /// Reads the rows of two clients.
    private mutating func read(at node: Int) {
        let ticket = nextTicket
        nextTicket += 1
        let keys = (0..<2).map { _ in
            let client = random.below(2)
            return RegistrationKey(
                part: Int16(client), app: app(UInt64(client)), client: "c\(client)")
        }
        readKeys[ticket] = keys
        perform(
            nodes[node].writer.read(.rows(keys, asOf: 0), ticket: ticket, at: now), of: node)
    }

    private mutating func deliverRequest(of node: Int) {
        guard nodes[node].isOpen, !nodes[node].waitsForStandby, !nodes[node].requests.isEmpty else {
            return
        }
        let request = nodes[node].requests.removeFirst()
        let commits = !isFaulty || random.happens(60)
        if let answer = server.execute(request, node: node, commits: commits) {
            nodes[node].answers.append(answer)
        } else {
            nodes[node].waitsForStandby = true
        }
    }

    private mutating func deliverAnswer(to node: Int) {
        guard nodes[node].isOpen, !nodes[node].answers.isEmpty else { return }
        let answer = nodes[node].answers.removeFirst()
        switch answer {
        case .success(.found(.some)): recoveredCount += 1
        case .failure(.raced): racedCount += 1
        default: break
        }
        perform(nodes[node].writer.receive(.answered(answer), at: now, using: &random), of: node)
    }

    private mutating func releaseWaiting() {
        guard let (node, position) = server.releaseWaiting() else { return }
        // Whoever waits for it has a connection that stayed open.
        guard nodes[node].waitsForStandby else { return }
        nodes[node].waitsForStandby = false
        nodes[node].answers.append(.success(.appended(position)))
    }

    private mutating func executeLate() {
        guard !late.isEmpty else { return }
        let (node, request) = late.remove(at: random.below(late.count))
        _ = server.execute(request, node: node, commits: true)
    }

    private mutating func cutAll() { for node in nodes.indices { cut(node) } }

    private mutating func cut(_ node: Int) {
        guard nodes[node].isOpen else { return }
        close(node)
        perform(
            nodes[node].writer.receive(
                .disconnected(.connectionLost(reason: "cut")), at: now, using: &random), of: node)
    }

    /// Ends a connection: some of what was sent is on its way, answers are lost.
    private mutating func close(_ node: Int) {
        for request in nodes[node].requests where random.happens(50) {
            late.append((node, request))
        }
        nodes[node].requests = []
        nodes[node].answers = []
        nodes[node].waitsForStandby = false
        nodes[node].isOpen = false
    }

    private mutating func advanceTime(by milliseconds: Int64) {
        now += milliseconds
        for node in nodes.indices {
            if let tick = nodes[node].writer.nextTick, tick <= now {
                perform(nodes[node].writer.tick(at: now, using: &random), of: node)
            }
        }
    }

    private mutating func perform(_ actions: [BatchWriter.Action], of node: Int) {
        for action in actions {
            switch action {
            case .connect:
                nodes[node].isOpen = true
                perform(nodes[node].writer.receive(.connected, at: now, using: &random), of: node)
            case .disconnect: close(node)
            case .send(let requests): nodes[node].requests += requests
            case .complete(let ticket, let outcome):
                if outcomes.updateValue(outcome, forKey: ticket) != nil {
                    faults.append("two outcomes of \(ticket)")
                }
            case .completeReading(let ticket, let outcome):
                if readings.updateValue(outcome, forKey: ticket) != nil {
                    faults.append("two outcomes of reading \(ticket)")
                }
                guard case .rows(let rows, _) = outcome else { break }
                for key in readKeys[ticket] ?? [] {
                    bases[node][key] = rows[key] ?? RegistrationRow.none(key)
                }
            case .becomeUnready(.tailLost):
                faults.append("a tail was lost that nobody was promised")
            case .becomeReady, .becomeUnready: break
            }
        }
    }

    // MARK: Judge

    /// The kinds of outcomes and records that occurred.
    var outcomeKinds: Set<String> {
        var kinds = Set(
            outcomes.values.flatMap { outcome -> [String] in
                switch outcome {
                case .accepted(let places):
                    places.map { if case .appended = $0 { "accepted" } else { "duplicate" } }
                case .written: []
                case .reused: ["reused"]
                case .conflict: ["conflict"]
                case .refused: ["refused"]
                case .unknown: ["unknown"]
                }
            })
        for outcome in readings.values { if case .rows = outcome { kinds.insert("rows") } }
        for row in server.rows {
            for record in (try? LogRecord.records(in: row.call.records)) ?? [] {
                switch record.content {
                case .change: break
                case .catalog: kinds.insert("catalog")
                case .reload: kinds.insert("reload")
                case .removal: kinds.insert("app")
                case .registration: kinds.insert("put")
                case .registrationRemoved: kinds.insert("removed")
                case .addressesLost: kinds.insert("addresses")
                }
            }
        }
        return kinds
    }

    func check() throws {
        var judge = LogJudge()
        for row in server.rows { judge.read(row) }
        var faults = faults + judge.faults
        for (ticket, write) in writes {
            guard let outcome = outcomes[ticket] else {
                faults.append("no outcome of \(ticket)")
                continue
            }
            faults += judge.faults(of: write, outcome)
        }
        for (ticket, keys) in readKeys {
            guard case .rows(let rows, let head) = readings[ticket] else {
                if readings[ticket] == nil { faults.append("no outcome of reading \(ticket)") }
                continue
            }
            faults += judge.faults(of: rows, keys, head: head)
        }
        guard faults.isEmpty else { throw TestFailure(faults.joined(separator: "\n")) }
    }
}

extension RegistrationRow {
    /// A client without a row.
    fileprivate static func none(_ key: RegistrationKey) -> Self {
        RegistrationRow(
            key: key, revision: 0, content: RegistrationContent(digest: 0, payload: []),
            ownTokens: [], updatedAt: 0)
    }
}

/// Reads a log from its first batch and compares it with what callers were told.
private struct LogJudge {
    private(set) var faults: [String] = []
    private var tables = ScriptedTables()
    private var head: Int64 = 0
    private var written: [Int64: LogRecord] = [:]
    /// The places of each app's catalogs so far, and of a record's app before the record.
    private var places: [String: ProbeResult.App] = [:]
    private var placesBefore: [Int64: ProbeResult.App] = [:]
    /// The number of records that each write has, by what tells it from others.
    private var copies: [String: Int] = [:]
    private var keys: Set<UInt128> = []
    private var revisions: [RegistrationKey: Int64] = [:]
    /// The tables after each batch.
    private var states: [Int64: ScriptedTables] = [0: ScriptedTables()]

    mutating func read(_ row: ScriptedServer.Row) {
        let call = row.call
        if row.position.last - call.count != head { faults.append("a gap at \(head)") }
        let records = (try? LogRecord.records(in: call.records)) ?? []
        if records.count != call.count { faults.append("\(head): \(records.count) records") }
        for key in call.keys where !keys.insert(key).inserted {
            faults.append("event \(key) twice")
        }
        for (index, record) in records.enumerated() {
            let sequence = head + Int64(index) + 1
            written[sequence] = record
            placesBefore[sequence] = places[record.app] ?? ProbeResult.App()
            switch record.content {
            case .catalog: places[record.app, default: .init()].newest = sequence
            case .removal: places[record.app] = .init(newest: sequence, removal: sequence)
            default: break
            }
            copies[Self.name(record, call), default: 0] += 1
        }
        compareRows(call, records)
        tables.apply(call, last: row.position.last)
        head = row.position.last
        states[head] = tables
    }

    /// Compares rows, addresses and catalogs with their records and with what they replace.
    private mutating func compareRows(_ call: AppendCall, _ records: [LogRecord]) {
        for registration in call.registrations {
            let key = registration.key
            if tables.live(key)?.revision ?? 0 != registration.base {
                faults.append("\(head): \(key.client) was decided from another revision")
            }
            if registration.revision <= revisions[key] ?? 0 {
                faults.append("\(head): a revision is used twice")
            }
            revisions[key] = registration.revision
            let content: LogRecord.Content =
                if let row = registration.content {
                    .registration(
                        .init(
                            part: key.part, client: key.client, revision: registration.revision,
                            digest: row.digest))
                } else {
                    .registrationRemoved(
                        part: key.part, client: key.client, revision: registration.revision)
                }
            if records.count(where: { $0 == LogRecord(app: key.app, content) }) != 1 {
                faults.append("\(head): a row without its record")
            }
        }
        if Set(call.claims.map(\.token)).count != call.claims.count {
            faults.append("\(head): an address got two owners")
        }
        for claim in call.claims {
            if tables.owners[claim.token] != claim.owner {
                faults.append("\(head): an address had another owner")
            }
            guard let owner = claim.owner else { continue }
            let lost = LogRecord(
                app: owner.app, .addressesLost(part: owner.part, client: owner.client))
            if !records.contains(lost) { faults.append("\(head): a lost address without record") }
        }
    }

    /// A name that all records of one write have in common.
    private static func name(_ record: LogRecord, _ call: AppendCall) -> String {
        switch record.content {
        case .change(_, let payload): "change \(payload)"
        case .catalog(let payload): "catalog \(payload)"
        case .reload(let scope): "reload \(scope)"
        case .removal: "app \(record.app)"
        case .registration(let registration): "put \(registration.digest)"
        case .registrationRemoved(_, let client, let revision):
            "remove \(client) from "
                + "\(call.registrations.first { $0.revision == revision && $0.key.client == client }?.base ?? 0)"
        case .addressesLost: "addresses"
        }
    }

    /// Returns what is wrong with the outcome of a write.
    func faults(of write: LogWrite, _ outcome: WriteOutcome) -> [String] {
        let ticket = write.ticket
        let bytes = [UInt8(truncatingIfNeeded: ticket), UInt8(truncatingIfNeeded: ticket >> 8)]
        let name: String
        /// Whether others may have written the same.
        var isShared = false
        switch write.content {
        case .changes: name = "change \(bytes)"
        case .catalog: name = "catalog \(bytes)"
        case .reload: name = "reload \(bytes)"
        case .removal: (name, isShared) = ("app \(write.app)", true)
        case .registration(let registration):
            if registration.content == nil {
                name = "remove \(registration.key.client) from \(registration.base)"
                isShared = true
            } else {
                name = "put \(ticket)"
            }
        }
        let copies = copies[name] ?? 0
        var faults: [String] = []
        switch outcome {
        case .accepted(let places):
            for case .appended(let sequence) in places {
                if placesBefore[sequence]?.removal != write.removal {
                    faults.append("\(ticket) is behind a removal")
                }
                if written[sequence]?.content != .change(event: nil, payload: bytes) {
                    faults.append("\(ticket) is lost")
                }
            }
            for case .duplicate(let sequence) in places where written[sequence] == nil {
                faults.append("\(ticket)'s event is lost")
            }
            let appended = places.count { if case .appended = $0 { true } else { false } }
            if copies != appended { faults.append("\(ticket): \(copies) copies") }
        case .written(let sequence, let revision):
            guard let record = written[sequence] else { return ["\(ticket) is lost"] }
            if placesBefore[sequence]?.removal != write.removal {
                faults.append("\(ticket) is behind a removal")
            }
            if copies < 1 || !isShared && copies != 1 { faults.append("\(name): \(copies) copies") }
            switch (record.content, write.content) {
            case (.reload, .reload): break
            case (.catalog, .catalog(_, let replaced)), (.removal, .removal(let replaced)):
                if placesBefore[sequence]?.newest != replaced {
                    faults.append("\(ticket) replaces another catalog")
                }
            case (.registration(let state), .registration) where state.revision == revision: break
            case (.registrationRemoved(_, _, revision), .registration): break
            default: faults.append("\(ticket) is another record")
            }
        case .reused, .refused, .conflict:
            if copies > 0, !isShared { faults.append("\(ticket) was refused and is in the log") }
        case .unknown:
            if copies > write.recordCount, !isShared {
                faults.append("\(ticket) was written twice")
            }
        }
        return faults
    }

    /// Returns what is wrong with rows that were read: they are those of the batch at their head.
    func faults(
        of rows: [RegistrationKey: RegistrationRow], _ keys: [RegistrationKey], head: Int64
    ) -> [String] {
        guard let state = states[head] else { return ["rows were read at a head that was lost"] }
        return keys.filter { rows[$0] != state.row($0) }.map {
            "\($0.client) at \(head): another row"
        }
    }
}
