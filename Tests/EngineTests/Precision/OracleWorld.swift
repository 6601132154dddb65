import Dispatch
import Foundation
import GatewayOperations
import GatewaySigning
import GatewayStorage
import GatewayTestSupport
import NIOCore
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine
@testable import GatewayServer

/// Plays events on a gateway from its log to its streams and pushes, with a clock that is held, and
/// lets the oracle judge what was sent after each.
struct OracleWorld {
    /// The oracle's first complaint, and the events up to it.
    struct Finding: Sendable, CustomStringConvertible {
        let fault: Oracle.Fault
        let events: [OracleEvent]
        /// The events with the time and the end of the log before each, and what was sent.
        let trace: [String]

        var description: String { "\(fault)\nafter\n" + trace.joined(separator: "\n") }
    }

    private static let heartbeat: Int64 = 15_000
    /// The number of keys whose versions the gateway stores; the events change a third as many.
    private static let versionKeys = 96
    /// The number of entries that maintenance leaves in the log.
    private static let logEntries: UInt64 = 100

    private let clock = HeldClock()
    private let sender = OracleSender()
    private let data: String
    private var oracle: Oracle
    private var fixture: StreamFixture
    private var push: PushLoop
    private var readers: [Int: (client: String, reader: StreamFixture.Reader, count: Int)] = [:]
    private var opened = 0
    private var posts = 0
    private var nextHeartbeat: Int64
    private var trace: [String] = []

    private init(devicesPerSecond: Int) async throws {
        data = try GatewayProcess.temporaryDirectory()
        oracle = Oracle(devicesPerSecond: devicesPerSecond)
        nextHeartbeat = clock.now + Self.heartbeat
        (fixture, push) = try Self.start(
            at: data, clock, sender, devicesPerSecond: devicesPerSecond)
        try await fixture.putCatalog(oracle.catalog.yaml)
    }

    /// Plays events until the oracle blames the gateway.
    ///
    /// - Parameter devicesPerSecond: `push.spreadPerSecond`.
    static func play(
        _ events: [OracleEvent], devicesPerSecond: Int = 1_000
    ) async throws -> Finding? {
        var world = try await OracleWorld(devicesPerSecond: devicesPerSecond)
        var finding: Finding?
        for (place, event) in events.enumerated() where finding == nil {
            do {
                try await world.play(event)
            } catch {
                world.oracle.blame(.lost, "an event failed: \(error)")
            }
            finding = world.oracle.faults.first.map {
                Finding(fault: $0, events: Array(events[...place]), trace: world.trace)
            }
        }
        await world.push.stop {}
        world.clock.end()
        try await world.fixture.stop()
        try FileManager.default.removeItem(atPath: world.data)
        return finding
    }

    /// Leaves out events as long as the same rule is broken without them.
    static func shrunk(_ finding: Finding, devicesPerSecond: Int = 1_000) async throws -> Finding {
        var shortest = finding
        for place in finding.events.indices.reversed() where place < shortest.events.count {
            var fewer = shortest.events
            fewer.remove(at: place)
            let other = try await play(fewer, devicesPerSecond: devicesPerSecond)
            if let other, other.fault.rule == finding.fault.rule { shortest = other }
        }
        return shortest
    }

    private static func start(
        at data: String, _ clock: HeldClock, _ sender: OracleSender, devicesPerSecond: Int
    ) throws -> (StreamFixture, PushLoop) {
        let fixture = try StreamFixture(
            try SQLiteStore(directory: data), clock: clock.gateway, pushes: true
        ) { configuration in
            configuration.coreLimits.versionKeysMax = versionKeys
            // Heartbeats are sent whenever the world ticks.
            configuration.streams.heartbeatSeconds = 1
            // Intervals are tried, budgets have tests of their own.
            let plenty = PushAllowance.Terms(perDay: 100_000, burst: 10_000, reserve: 0)
            for account in PushBudget.Account.allCases {
                configuration.push.terms.budget[account] = plenty
            }
            configuration.push.terms.interval = Oracle.interval
            configuration.push.terms.spread = PushSpread.Terms(devicesPerSecond: devicesPerSecond)
        }
        guard let push = fixture.engine.push else { throw TestFailure("it pushes nothing") }
        let clients = fixture.engine.clients
        push.start(
            PushLoop.Dependencies(
                store: fixture.store,
                drop: { key, address in try await clients.drop(address, of: key) },
                sent: { try await clients.sent(to: $0) },
                sender: { _, _ in sender }, acceptTime: { _ in nil }))
        return (fixture, push)
    }

    // MARK: Events

    private mutating func play(_ event: OracleEvent) async throws {
        oracle.now = clock.now
        trace.append("\(clock.now), \(fixture.store.head): \(event.line)")
        let step = try await apply(event)
        try await look(step)
    }

    private mutating func apply(_ event: OracleEvent) async throws -> Oracle.Step {
        switch event {
        case .client(let name, let addresses, let isVouched):
            try await enter(name) { client in
                client.widgets = [
                    .init(kind: "detail", character: "panda"), .init(kind: "status", character: ""),
                ]
                client.addresses = addresses
                client.isVouched = isVouched
            }
        case .devices(let name, let count):
            for number in 0..<count {
                try await enter("\(name)\(number)") { client in
                    client.widgets = [.init(kind: "detail", character: "panda")]
                    client.addresses = [.widgets(String(0xd000 + number, radix: 16))]
                }
            }
        case .holders(let name, let count, let character):
            try await enter((0..<count).map { "\(name)\($0)" }, holdingSetOf: character)
        case .prompt(let name): oracle.clients[name]?.isPrompt = true
        case .touch(let name, let touch): try await register(name, touch)
        case .adds(let name, let kind, let character):
            let widget = Oracle.Client.Widget(kind: kind, character: character)
            try await register(name) { client in
                if !client.widgets.contains(widget) { client.widgets.append(widget) }
            }
        case .removes(let name, let kind, let character):
            let widget = Oracle.Client.Widget(kind: kind, character: character)
            try await register(name) { client in client.widgets.removeAll { $0 == widget } }
        case .moves(let name, let account): try await move(name, to: account)
        case .addresses(let name, let addresses):
            try await register(name, patching: ["delivery"]) { $0.addresses = addresses }
        case .control(let name, let id, let lamp, let address):
            try await register(name, patching: ["controls"]) { client in
                // Who places a control has built it. One lamp has one way to be told of it.
                if let lamp, !client.controls.contains(where: { $0.id == id && $0.lamp == lamp }) {
                    client.since[OracleItem(sort: .control, kind: "lamp", value: lamp)] = nil
                }
                client.controls.removeAll {
                    $0.id == id || $0.lamp == lamp && $0.address != address
                }
                if let lamp { client.controls.append(.init(id: id, lamp: lamp, address: address)) }
            }
        case .begins(let name, let hero, let address):
            try await register(name, patching: ["activities"]) { client in
                client.activities.removeAll { $0.hero == hero }
                client.activities.append(.init(hero: hero, address: address))
            }
        case .ends(let name, let hero):
            try await register(name, patching: ["activities"]) { client in
                client.activities.removeAll { $0.hero == hero }
            }
        case .set(let name, let character, let isBuilt):
            try await registerSet(of: name, character, isBuilt: isBuilt)
        case .opens(let name, let loop, let kinds):
            guard let client = oracle.clients[name], client.streams.count < 2 else { return .other }
            let admitted = try admit(name, stream: true, kinds: kinds)
            let reader = try await fixture.open(admitted, on: loop)
            opened += 1
            readers[opened] = (name, reader, 0)
            oracle.opened(opened, by: name, kinds: kinds)
            return .opening(opened)
        case .breaks(let name):
            for (number, stream) in readers where stream.client == name {
                try await stream.reader.close()
                readers[number] = nil
                oracle.closed(number, of: name)
            }
        case .polls(let name, let kind): try await poll(name, kind: kind)
        case .eachPolls(let name):
            for client in oracle.clients.keys.sorted() where client.hasPrefix(name) {
                try await poll(client, kind: nil)
            }
        case .acks(let name, let sets): try await acknowledge(name, sets: sets)
        case .change(let entity, let id):
            try await post(entity, [id])
            return .live
        case .burst(let entity, let id, let count):
            try await post(entity, Array(repeating: id, count: count))
            return .live
        case .catalog(let edit):
            var catalog = oracle.catalog
            catalog.apply(edit)
            let (before, rules) = (fixture.store.head, oracle.catalog.rules)
            try await fixture.putCatalog(catalog.yaml)
            let head = fixture.store.head
            oracle.put(catalog, at: head > before ? head : nil)
            return catalog.rules == rules ? .live : .registration
        case .pass(let milliseconds): try await pass(milliseconds)
        case .flood: try await flood()
        case .turnover: try await turnOver()
        case .restart: try await restart()
        case .void: try await void()
        case .dies(let name):
            let address = oracle.clients[name]?.addresses.first { !$0.isWebhook }
            if let address { sender.script([.dies], at: address) }
        case .fails(let name, let count):
            let client = oracle.clients[name]
            let address =
                client?.addresses.first ?? client?.activities.lazy.compactMap(\.address).first
            if let address { sender.script(Array(repeating: .fails, count: count), at: address) }
        }
        return switch event {
        case .touch, .adds, .removes, .moves, .addresses, .control, .begins, .ends, .set:
            .registration
        default: .other
        }
    }

    // MARK: Registrations

    /// Registers a new client, which then builds everything.
    private mutating func enter(
        _ name: String, _ fill: (inout Oracle.Client) -> Void
    ) async throws {
        var client = Oracle.Client()
        fill(&client)
        oracle.clients[name] = client
        let outcome = try await fixture.engine.clients.register(
            StreamFixture.key(name), .document(.object(client.document)), by: .backend)
        if client.isVouched { try await present(client.account, by: name) }
        oracle.clients[name]?.cursor = fixture.cursors.text(outcome.position)
        oracle.head = fixture.store.head
        oracle.registered(name, isNew: true)
    }

    /// Registers many clients that offer a set and nothing else.
    private mutating func enter(
        _ names: [String], holdingSetOf character: String
    ) async throws {
        var client = Oracle.Client()
        client.offer = Oracle.Client.Offer(character: character, builtAt: nil)
        let document = JSONValue.object(client.document)
        let clients = fixture.engine.clients
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (place, name) in names.enumerated() {
                if place >= 200 { try await group.next() }
                group.addTask {
                    _ = try await clients.register(
                        StreamFixture.key(name), .document(document), by: .backend)
                }
            }
            try await group.waitForAll()
        }
        oracle.head = fixture.store.head
        client.cursor = fixture.cursors.text(oracle.head)
        for name in names {
            oracle.clients[name] = client
            oracle.registered(name, isNew: true)
        }
    }

    private mutating func register(_ name: String, _ touch: OracleTouch) async throws {
        switch touch {
        case .put: try await register(name) { _ in }
        case .reorder:
            try await register(name) { client in
                client.widgets.reverse()
                client.controls.reverse()
            }
        case .patch: try await register(name, patching: []) { _ in }
        case .version: try await register(name, patching: ["osVersion"]) { $0.osVersion += 1 }
        }
    }

    /// Registers a client again, by a whole document or by a patch of some members.
    private mutating func register(
        _ name: String, patching members: [String]? = nil, _ change: (inout Oracle.Client) -> Void
    ) async throws {
        guard var client = oracle.clients[name] else { return }
        change(&client)
        oracle.clients[name] = client
        let document = client.document
        var input = RegistrationInput.document(.object(document))
        if let members {
            var patch = JSONObject()
            for member in members { patch[member] = document[member] }
            input = .patch(.object(patch))
        }
        _ = try await fixture.engine.clients.register(
            StreamFixture.key(name), input, by: .backend)
        oracle.head = fixture.store.head
        oracle.registered(name)
    }

    /// Moves a client to another account, by its next token or by its backend.
    private mutating func move(_ name: String, to account: String) async throws {
        guard let client = oracle.clients[name] else { return }
        guard client.isVouched else {
            return try await register(name, patching: ["attributes"]) { $0.account = account }
        }
        oracle.clients[name]?.account = account
        try await present(account, by: name)
        oracle.head = fixture.store.head
        oracle.registered(name)
    }

    private func present(_ account: String, by name: String) async throws {
        _ = try await fixture.engine.clients.present(
            ["account": [account]], of: StreamFixture.key(name))
    }

    private mutating func registerSet(
        of name: String, _ character: String, isBuilt: Bool
    ) async throws {
        guard let client = oracle.clients[name] else { return }
        // A void cursor is none to build at.
        let builtAt = isBuilt && client.position > 0 ? client.cursor : nil
        try await register(name, patching: ["recommendations"]) { client in
            client.offer = Oracle.Client.Offer(character: character, builtAt: builtAt)
        }
        oracle.registeredSet(
            of: name, builtAt: builtAt == nil ? nil : client.position, isNew: client.offer == nil,
            floor: fixture.store.floor)
    }

    // MARK: Requests of clients

    private func admit(
        _ name: String, stream: Bool, kinds: [String]
    ) throws -> StreamAdmission.Admitted {
        let client = oracle.clients[name]
        let access = fixture.admission.authorizer.access
        let vouched: [String: [String]] =
            client.map { $0.isVouched ? ["account": [$0.account]] : [:] } ?? [:]
        let token = VerifiedToken(
            issuer: "issuer", subject: name, app: StreamFixture.app, scopes: [.client],
            expires: clock.wall / 1_000 + 86_400 * 30, attributes: vouched, kid: "")
        return try fixture.admission.admit(
            StreamAdmission.Identified(
                key: StreamFixture.key(name), token: token,
                grant: StreamGrant(token, at: access.revision.current, by: access),
                registration: nil, wantsStream: stream, kinds: kinds.isEmpty ? nil : Set(kinds),
                cursor: client?.cursor, origin: nil))
    }

    private mutating func poll(_ name: String, kind: String?) async throws {
        guard oracle.clients[name] != nil else { return }
        let admitted = try admit(name, stream: false, kinds: kind.map { [$0] } ?? [])
        // As the route does.
        if admitted.isPushable { push.submit([.polled(admitted.key)]) }
        let answer = try await LongPoll.answer(
            admitted, wait: 0, on: fixture.loops.all[0], fixture.admission, channel: nil)
        let cursor = fixture.cursors.text(answer.position, in: answer.epoch)
        oracle.head = fixture.store.head
        oracle.polled(name, OracleNotice(answer.stale), (cursor, answer.position), kind: kind)
    }

    /// Acknowledges the client's cursor, unless it is void.
    private mutating func acknowledge(_ name: String, sets: Bool) async throws {
        guard let client = oracle.clients[name], let text = client.cursor else { return }
        let cursor = fixture.cursors.judge(text)
        guard case .after(let sequence) = cursor.point else { return }
        try await fixture.engine.clients.acknowledge(
            StreamFixture.key(name), at: sequence, in: cursor.epoch,
            recommendations: sets && client.offer != nil ? ["detail"] : [], rebuilt: [])
        oracle.acknowledged(name, at: sequence, sets: sets)
    }

    // MARK: Backends and operators

    private mutating func post(_ entity: String, _ ids: [String]) async throws {
        posts += 1
        let source = "oracle-\(posts)"
        let events = ids.enumerated().map { place, id in
            CloudEvent(source: source, id: "\(place)", change: Change(entity: entity, id: id))
        }
        let last = try await fixture.engine.changes.post(events, app: StreamFixture.app).sequence
        let first = last - UInt64(ids.count) + 1
        for (place, id) in ids.enumerated() {
            oracle.changed(entity, id, at: first + UInt64(place))
        }
    }

    private mutating func flood() async throws {
        posts += 1
        let source = "flood-\(posts)"
        let first = fixture.store.head + 1
        let events = (0..<3 * Self.versionKeys).map { place in
            CloudEvent(
                source: source, id: "\(place)",
                change: Change(entity: "Character", id: "\(source)-\(place)"))
        }
        _ = try await fixture.engine.changes.post(events, app: StreamFixture.app)
        // What is sealed is handed to the loops before this.
        let publisher = fixture.engine.log.applier.publisher
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            publisher.sealer.queue.async { continuation.resume() }
        }
        oracle.head = fixture.store.head
        oracle.flooded(from: first)
        // So many keys take longer than a heartbeat.
        try await look(.other)
        try await pass(Self.heartbeat)
    }

    private mutating func turnOver() async throws {
        try await post("Account", Array(repeating: "nobody", count: 60))
        try await look(.other)
        try await pass(2 * Self.heartbeat)
        // As the gateway's maintenance does.
        let (head, floor) = (fixture.store.head, fixture.store.floor)
        try await fixture.engine.clients.confirmUnowed(below: floor + (head - floor) / 2)
        _ = try await fixture.engine.log.write(for: .gateway, cost: 1_024, freesSpace: true) {
            try $0.prune(acceptedBefore: 0, keepRows: Self.logEntries, limit: 5_000)
        }
    }

    private mutating func restart() async throws {
        readers = [:]
        await push.stop {}
        try await fixture.stop()
        (fixture, push) = try Self.start(
            at: data, clock, sender, devicesPerSecond: oracle.devicesPerSecond)
        oracle.restarted(floor: fixture.store.floor)
    }

    private mutating func void() async throws {
        let fixture = fixture
        let before = fixture.cursors.epoch
        _ = fixture.cursors.judge(fixture.cursors.text(fixture.store.head + 1_000))
        try await eventually("another epoch has begun") { fixture.cursors.epoch != before }
        try await eventually("void positions are replaced") {
            try !fixture.store.hasVoidPositions()
        }
        oracle.head = fixture.store.head
        oracle.voided()
    }

    // MARK: Time

    /// Lets time pass, from one moment at which something is due to the next.
    private mutating func pass(_ milliseconds: Int64) async throws {
        let end = clock.now + milliseconds
        while clock.now < end, oracle.faults.isEmpty {
            var next = min(end, nextHeartbeat)
            if let due = try await push.ask({ scheduler, _ in scheduler.nextDue }) {
                next = min(next, due)
            }
            for shard in fixture.loops.all {
                let window = try await shard.loop.submit { shard.shard.nextWindowEnd }.get()
                if let window { next = min(next, window) }
            }
            clock.advance(to: max(next, clock.now + 1))
            oracle.now = clock.now
            let ticks = clock.now >= nextHeartbeat
            if ticks { nextHeartbeat = clock.now + Self.heartbeat }
            for shard in fixture.loops.all {
                try await shard.loop.submit {
                    shard.endWindows()
                    if ticks { shard.tick() }
                }.get()
            }
            try await look(.live)
        }
    }

    /// Judges everything that was sent since the last look.
    private mutating func look(_ step: Oracle.Step) async throws {
        try await settle()
        try await judge(step)
        let prompt = oracle.promptClients
        guard !prompt.isEmpty, oracle.faults.isEmpty else { return }
        for name in prompt { try await acknowledge(name, sets: true) }
        try await settle()
        try await judge(.other)
    }

    private mutating func judge(_ step: Oracle.Step) async throws {
        oracle.head = fixture.store.head
        for (number, stream) in readers.sorted(by: { $0.key < $1.key }) {
            let blocks = try await stream.reader.received(after: stream.count)
            guard !blocks.isEmpty else { continue }
            readers[number]?.count += blocks.count
            let judged = try blocks.map { block in
                Oracle.Block(
                    id: try block.id.map { (text: $0, sequence: try Cursor.sequence($0)) },
                    notice: try block.data.map { OracleNotice(try claims(of: $0)) })
            }
            for block in judged {
                let id = block.id.map { " id \($0.sequence)" } ?? ""
                let notice = block.notice.map { " \($0)" } ?? ""
                trace.append("  \(clock.now): stream \(number) of \(stream.client)\(id)\(notice)")
            }
            oracle.streamed(judged, on: number, to: stream.client, step)
        }
        for push in sender.take() {
            trace.append(
                "  \(clock.now): \(push.address) of \(push.client) \(push.answer) \(push.notice)")
            oracle.pushed(push)
        }
        oracle.judgeDebts()
        oracle.moveCursors()
    }

    /// Waits until all that the last event leads to, without time passing, is done.
    private func settle() async throws {
        let head = fixture.store.head
        for shard in fixture.loops.all { try await shard.reached(head) }
        let end = ContinuousClock.now + Patience.duration
        while try await !isIdle(at: head) {
            guard ContinuousClock.now < end else { throw TestFailure("pushes do not end") }
            await Task.yield()
        }
        // A registration without a dead address reached the loops meanwhile.
        for shard in fixture.loops.all { try await shard.loop.submit {}.get() }
    }

    private func isIdle(at head: UInt64) async throws -> Bool {
        guard try await push.isCaughtUp() else { return false }
        return try await push.ask { scheduler, now in
            scheduler.position >= head && scheduler.pushesUnderWay == 0
                && (scheduler.nextDue ?? .max) > now
                && !scheduler.clients.values.contains {
                    $0.addresses.values.contains(where: \.isDead)
                }
        }
    }
}

extension Oracle.Client {
    fileprivate var document: JSONObject {
        func parameters(_ character: String) -> JSONValue {
            character.isEmpty ? [:] : ["character": .string(character)]
        }
        let stream: JSONValue = ["type": "stream"]
        var document: JSONObject = [
            "platform": "iOS", "osVersion": .string("26.\(osVersion)"),
            "widgets": .array(
                widgets.map { widget -> JSONValue in
                    let isRectangular = widget.kind == "boss"
                    let hasCharacter = widget.kind == "detail" || widget.kind == "busy"
                    return [
                        "kind": .string(widget.kind),
                        "family": isRectangular ? "accessoryRectangular" : "systemSmall",
                        "parameters": parameters(hasCharacter ? widget.character : ""),
                    ]
                }),
            "controls": .array(
                controls.map { control -> JSONValue in
                    var object: JSONObject = [
                        "kind": "lamp", "id": .string(control.id),
                        "parameters": parameters(control.lamp),
                    ]
                    object["delivery"] = control.address?.json
                    return .object(object)
                }),
            "activities": .array(
                activities.map { activity -> JSONValue in
                    var object: JSONObject = [
                        "type": "Battle", "id": .string(activity.hero),
                        "attributes": ["hero": .string(activity.hero)],
                    ]
                    object["delivery"] = activity.address?.json
                    return .object(object)
                }),
            "delivery": .array([stream] + addresses.map(\.json)),
        ]
        if !isVouched { document["attributes"] = ["account": .string(account)] }
        if let offer {
            let item: JSONValue = [
                "parameters": parameters(offer.character), "description": "One",
            ]
            var offered: JSONObject = ["kind": "detail", "items": .array([item])]
            offered["builtAt"] = offer.builtAt.map { JSONValue.string($0) }
            document["recommendations"] = .array([.object(offered)])
        }
        return document
    }
}
