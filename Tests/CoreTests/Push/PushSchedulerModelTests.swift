import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

/// Random histories of several clients, compared with the definitions by what APNs and the clients
/// saw.
@Suite struct PushSchedulerModelTests {
    @Test(arguments: 0..<8)
    func `each client is pushed after its last change, or withheld, or unreachable`(part: Int)
        throws
    {
        var counts: [String: Int] = [:]
        for seed in stride(from: part, to: 800, by: 8) {
            var history = try PushHistory(seed: UInt64(seed))
            for _ in 0..<150 where history.violation == nil { try history.step() }
            if history.violation == nil { try history.converge() }
            if let violation = history.violation {
                Issue.record("seed \(seed): \(violation)")
                return
            }
            counts.merge(history.counts, uniquingKeysWith: +)
        }
        for what in [
            "taken", "taken by webpush", "taken by fcm", "failed", "dropped", "stolen", "restart",
            "acknowledged", "stream", "clear",
            "confirmed at the end", "told at the end", "unreachable at the end",
        ] {
            #expect(counts[what, default: 0] > 0, "\(what) never happened")
        }
    }
}

/// A history of a few clients that show the items 0...5 of one kind.
struct PushHistory {
    private struct Client {
        var items: Set<String>
        var token: String?
        /// The sequence up to which the client confirmed.
        var confirmed: UInt64
        /// The sequence that the scheduler knows to be confirmed. A restart may forget it.
        var heard: UInt64 = 0
        /// The sequence up to which a push notified the client, by any of its tokens.
        var told: UInt64 = 0
        var streams = 0
        var record: ClientRecord
    }

    private(set) var violation: String?
    private(set) var counts: [String: Int] = [:]
    private var small: SmallPushScheduler
    private var random: SplitMix64
    private var clients: [String: Client] = [:]
    private var changes: [(sequence: UInt64, item: String?)] = []
    private var underWay: [DuePush] = []
    /// The numbers of those pushes whose address was withdrawn meanwhile.
    private var forgotten: Set<UInt64> = []
    private var deadTokens: Set<String> = []
    private var owners: [String: String] = [:]
    private var tokens = 0

    init(seed: UInt64) throws {
        random = SplitMix64(seed: seed)
        var terms = PushScheduler.Terms()
        terms.underWayMax = 3
        small = try SmallPushScheduler(terms: terms)
        for index in 0..<4 { register("c\(index)") }
    }

    mutating func step() throws {
        small.wait(random.pick([0, 1, 1_000, 25_000, 400_000, 7_200_000]))
        take()
        switch random.below(100) {
        case 0..<30: try change()
        case 30..<60: finish()
        case 60..<70: register("c\(random.below(4))")
        case 70..<80: acknowledge("c\(random.below(4))")
        case 80..<86: stream("c\(random.below(4))")
        case 86..<92: save()
        case 92..<95: try restart()
        default: break
        }
        take()
    }

    /// Stops all changes; everything must then settle.
    mutating func converge() throws {
        for name in clients.keys.sorted() {
            while clients[name]?.streams ?? 0 > 0 { closeStream(name) }
        }
        for _ in 0..<400 {
            take()
            for order in underWay { answer(order, .delivered) }
            underWay = []
            small.wait(1_800_000)
        }
        take()
        for (name, client) in clients {
            let latest = self.latest(client.items, since: client.record.since)
            guard let token = client.token, !deadTokens.contains(token), owners[token] == name
            else {
                counts["unreachable at the end", default: 0] += 1
                continue
            }
            if client.confirmed >= latest {
                counts["confirmed at the end", default: 0] += 1
            } else if client.told >= latest {
                counts["told at the end", default: 0] += 1
            } else {
                violation = "\(name) was never told of \(latest)"
            }
        }
        let statusCounts = small.scheduler.statusCounts(now: small.now)
        if statusCounts.withheld + statusCounts.waiting + statusCounts.underWay > 0 {
            violation = "something is left to do at the end: \(statusCounts)"
        }
    }

    private func latest(_ items: Set<String>, since: UInt64) -> UInt64 {
        changes.last { $0.sequence > since && ($0.item.map(items.contains) ?? true) }?.sequence ?? 0
    }

    /// Returns the address with a token, or with a subscription of that name.
    private static func address(_ token: String) -> DeliveryAddress {
        if token.hasPrefix("fcm") { return .fcm(token: token) }
        guard token.hasPrefix("webpush") else { return apns(token) }
        let endpoint = "https://push.example/" + token
        return .webPush(.init(endpoint: endpoint, p256dh: "p", auth: "a"))
    }

    private static func token(_ address: DeliveryAddress) -> String? {
        switch address {
        case .stream, .webhook: nil
        case .apns(let apns): apns.token
        case .webPush(let push): push.endpoint.split(separator: "/").last.map(String.init)
        case .fcm(let token): token
        }
    }

    // MARK: Events

    private mutating func change() throws {
        let item: String? = random.below(12) == 0 ? nil : "\(random.below(6))"
        try small.change(item, urgency: random.pick([.low, .normal, .high]))
        changes.append((small.head, item))
    }

    private mutating func register(_ name: String) {
        let isFirst = clients[name] == nil
        let since = clients[name]?.record.since ?? small.head
        var token = clients[name]?.token
        if token == nil || random.below(3) == 0 {
            if random.below(6) == 0, let others = clients.values.compactMap(\.token).min() {
                // This is a device restored from the backup of another.
                token = others
                counts["stolen", default: 0] += 1
            } else {
                tokens += 1
                token = "\(random.pick(["apns", "webpush", "fcm"]))\(tokens)"
            }
        }
        if token != clients[name]?.token {
            forgotten.formUnion(
                underWay.lazy.filter { $0.client.client == name }.map(\.number))
        }
        let items = Set((0..<(1 + random.below(2))).map { _ in "\(random.below(6))" })
        // A newly shown widget was built when the client registered.
        let known = isFirst ? items : clients[name]?.items.intersection(items) ?? []
        let record = device(
            known.isEmpty ? items.sorted() : known.sorted(), named: name,
            delivery: [.stream] + (token.map { [Self.address($0)] } ?? []), since: since,
            addressedAt: small.now)
        if clients[name] == nil {
            clients[name] = Client(items: [], token: nil, confirmed: since, record: record)
        }
        // A client that registers has built what it newly shows.
        if known.isEmpty { clients[name]?.confirmed = small.head }
        clients[name]?.items = known.isEmpty ? items : known
        clients[name]?.token = token
        clients[name]?.record = record
        if let token { owners[token] = name }
        let heard = PushScheduler.Evidence(
            confirmed: clients[name]?.heard ?? 0, isStreaming: clients[name]?.streams ?? 0 > 0)
        small.scheduler.registered(record, app: "app", heard: heard, now: small.now)
    }

    private mutating func acknowledge(_ name: String) {
        let cursor = small.head - UInt64(random.below(3).clamped(to: Int(small.head)))
        let confirmed = clients[name]?.confirmed ?? 0
        clients[name]?.confirmed = max(confirmed, cursor)
        let heard = clients[name]?.heard ?? 0
        counts["acknowledged", default: 0] += 1
        clients[name]?.heard = max(heard, cursor)
        small.scheduler.acknowledged(
            ClientKey(app: "app", client: name), upTo: cursor, now: small.now)
    }

    private mutating func stream(_ name: String) {
        if clients[name]?.streams ?? 0 > 0 { return closeStream(name) }
        clients[name]?.streams += 1
        counts["stream", default: 0] += 1
        let cursor = clients[name]?.confirmed ?? 0
        small.scheduler.streamOpened(
            ClientKey(app: "app", client: name), resuming: cursor, now: small.now)
    }

    private mutating func closeStream(_ name: String) {
        clients[name]?.streams -= 1
        small.scheduler.streamEnded(ClientKey(app: "app", client: name), now: small.now)
    }

    private mutating func save() {
        let changed = small.scheduler.takeChanged(limit: 3, now: small.now, wall: small.now)
        for (key, client) in changed { small.saved[key] = client }
        guard changed.count < 3 else { return }
        small.clear = small.scheduler.clear
        counts["clear", default: 0] += 1
    }

    /// Kills the process: pushes in flight may have arrived, and their answers are lost.
    private mutating func restart() throws {
        counts["restart", default: 0] += 1
        for order in underWay where random.below(2) == 0 { note(order) }
        underWay = []
        let records = clients.values.map(\.record)
        try small.restart(records.sorted { $0.addressedAt < $1.addressedAt })
        for name in clients.keys.sorted() {
            clients[name]?.streams = 0
            clients[name]?.heard = 0
        }
    }

    // MARK: Pushes

    private mutating func take() {
        var actions = small.scheduler.takeActions()
        while !actions.isEmpty {
            for action in actions { perform(action) }
            actions = small.scheduler.takeActions()
        }
    }

    private mutating func perform(_ action: PushScheduler.Action) {
        switch action {
        case .push(let order): check(order)
        case .readSent: violation = "a stream was asked, and nothing collapses"
        case .drop(let key, let address):
            guard clients[key.client]?.record.registration.delivery.contains(address) ?? false
            else { return }
            counts["dropped", default: 0] += 1
            let token = Self.token(address)
            clients[key.client]?.token = nil
            forgotten.formUnion(
                underWay.lazy.filter { $0.client == key }.map(\.number))
            if let record = clients[key.client]?.record {
                let without = device(
                    record.registration.widgets.compactMap { $0.parameters["a"]?.texts.first },
                    named: key.client, delivery: [.stream], since: record.since,
                    addressedAt: record.addressedAt)
                clients[key.client]?.record = without
                small.scheduler.registered(without, app: "app", now: small.now)
            }
            if let token, owners[token] == key.client { owners[token] = nil }
        case .disabled: violation = "a webhook appeared"
        case .sourceFailed: violation = "a Live Activity appeared"
        }
    }

    private mutating func check(_ order: DuePush) {
        let name = order.client.client
        guard let client = clients[name], let token = Self.token(order.address) else {
            violation = "a push to nobody"
            return
        }
        if owners[token] != name { violation = "\(name) was pushed to by another's token" }
        if order.content.isEmpty { violation = "a push that says nothing" }
        if underWay.contains(where: {
            $0.client == order.client && $0.address == order.address
                && !forgotten.contains($0.number)
        }) {
            violation = "two pushes under way to one address"
        }
        if underWay.count >= small.terms.underWayMax { violation = "too many pushes under way" }
        let latest = self.latest(client.items, since: client.record.since)
        if client.heard >= latest {
            violation =
                "\(name) was pushed to without need: \(words(order.content)) at "
                + "\(order.position), heard \(client.heard), changed \(latest)"
        }
        underWay.append(order)
    }

    private mutating func finish() {
        guard !underWay.isEmpty else { return }
        let order = underWay.remove(at: random.below(underWay.count))
        switch random.below(10) {
        case 0..<6: answer(order, .delivered)
        case 6: answer(order, .dropAddress)
        case 7: answer(order, .retry(.connection))
        case 8: answer(order, .retry(.device))
        default: answer(order, .retry(.service), mayHaveArrived: true)
        }
    }

    private mutating func answer(
        _ order: DuePush, _ verdict: APNsReaction.Verdict, mayHaveArrived: Bool = false
    ) {
        if verdict == .delivered { note(order) } else { counts["failed", default: 0] += 1 }
        if verdict == .dropAddress, let token = Self.token(order.address) {
            deadTokens.insert(token)
        }
        small.scheduler.finished(
            order.number, .service(verdict, mayHaveArrived: mayHaveArrived), now: small.now,
            random: random.next())
    }

    private mutating func note(_ order: DuePush) {
        let name = order.client.client
        counts["taken", default: 0] += 1
        counts["taken by \(order.address.channel.rawValue)", default: 0] += 1
        let told = max(clients[name]?.told ?? 0, order.position)
        clients[name]?.told = told
    }
}

extension Int {
    fileprivate func clamped(to bound: Int) -> Int { Swift.min(self, bound) }
}
