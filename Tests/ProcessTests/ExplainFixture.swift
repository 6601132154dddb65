import APNsSimulator
import Foundation
import GatewayTestSupport
import WidgetModel

/// A gateway with a thousand clients of every sort, which get notifications and answer, and the
/// model of the notifications that reached them.
final class ExplainFixture {
    static let app = PushFixture.app
    /// The number of characters that any client may show, and of those that only followers show.
    private static let common = 160
    private static let lively = 12

    let push: PushFixture
    let http: TestHTTP
    var model = ExplainModel()
    var random: SplitMix64
    private var streams: [Int: TestHTTPStream] = [:]
    private var events = 0
    private let tokens: [String]

    var gateway: GatewayProcess { push.gateway }

    init(seed: UInt64, clients: Int) throws {
        random = SplitMix64(seed: seed)
        push = try PushFixture(seed: seed, options: ["interval: 1h"])
        http = push.gateway.http()
        let put = try http.request(
            "PUT", "/v1/apps/\(Self.app)/catalog", token: push.backend,
            headers: [("Content-Type", "application/yaml")], body: Self.catalog)
        guard put.status == 200 else { throw TestFailure(put.text) }
        tokens = try push.gateway.clientTokens(
            app: Self.app, clients: (0..<clients).map { "c\($0)" })
    }

    private static let catalog = """
        app: \(app)
        entities:
          Character: { properties: [health] }
          Account: { properties: [] }
          Rumour: { properties: [] }
        intents: { One: { parameters: [{ name: character, type: Character }] } }
        widgets:
          - kind: detail
            configuration: appIntent
            intent: One
            families: [systemSmall]
            dependsOn: [{ entity: Character, match: { id: $character } }]
            recommendations: { dependsOn: [{ entity: Character, operations: [insert, delete] }] }
          - kind: quick
            configuration: appIntent
            intent: One
            families: [systemSmall]
            collapse: 250ms
            dependsOn: [{ entity: Character, match: { id: $character } }]
          - kind: status
            configuration: static
            families: [systemSmall]
            dependsOn: [{ entity: Account, match: { account: $client.account } }]
          - kind: hourly
            configuration: appIntent
            intent: One
            families: [systemSmall]
            collapse: 3600s
            dependsOn: [{ entity: Rumour, match: { id: $character } }]
        """

    // MARK: Clients

    /// Registers clients: of every ten, two follow, four poll, three receive pushes and one does
    /// nothing.
    func register(_ numbers: Range<Int>) throws {
        for number in numbers {
            let name = "c\(number)"
            let isDevice = (6...8).contains(number % 10)
            var items: [ExplainModel.Item] = []
            for _ in 0..<1 + random.below(2) {
                let character = "h\(random.below(Self.common))"
                let item = ExplainModel.Item.character(kind: "detail", character)
                if !items.contains(item) { items.append(item) }
            }
            if number % 10 < 2 {
                items.append(.character(kind: "quick", "l\(random.below(Self.lively))"))
                items.append(.character(kind: "hourly", "r\(random.below(4))"))
            }
            if !isDevice, random.happens(40) { items.append(.account) }
            if random.happens(number % 10 < 6 ? 30 : 10) { items.append(.set) }
            var delivery: [JSONValue] = [["type": "stream"]]
            var pushTokens: [String: String] = [:]
            if isDevice {
                let types = items.contains(.set) ? ["widgets", "background"] : ["widgets"]
                for (place, type) in types.enumerated() {
                    let token = "aa" + String(format: "%06x", number * 2 + place)
                    pushTokens[type] = token
                    delivery.append([
                        "type": "apns", "pushType": .string(type), "token": .string(token),
                        "environment": "production",
                    ])
                }
            }
            let account = "a\(random.below(5))"
            let platform = random.pick(["iOS", "watchOS", "macOS"])
            let since = model.changes.keys.max() ?? 2
            let answer = try http.register(
                name, app: Self.app, token: push.backend,
                [
                    "platform": .string(platform), "attributes": ["account": .string(account)],
                    "widgets": .array(items.compactMap { Self.widget($0) }),
                    "recommendations": items.contains(.set)
                        ? [["kind": "detail", "items": [["parameters": [:], "description": "x"]]]]
                        : [],
                    "delivery": .array(delivery),
                ])
            guard answer.status == 201, let cursor = answer["cursor"]?.stringValue else {
                throw TestFailure(answer.text)
            }
            model.clients.append(
                .init(
                    name: name, token: tokens[number], account: account, items: items,
                    platform: platform, pushTokens: pushTokens, since: since, cursor: cursor,
                    setConfirmed: since))
            if number % 10 < 2 { try follow(number) }
        }
    }

    private static func widget(_ item: ExplainModel.Item) -> JSONValue? {
        switch item {
        case .character(let kind, let character):
            [
                "kind": .string(kind), "family": "systemSmall",
                "parameters": ["character": .string(character)],
            ]
        case .account: ["kind": "status", "family": "systemSmall", "parameters": [:]]
        case .set: nil
        }
    }

    // MARK: Streams

    private var openedAt: [Int: UInt64] = [:]

    private func follow(_ number: Int) throws {
        let client = model.clients[number]
        // It has applied everything that its cursor covers.
        model.clients[number].confirmed = max(
            client.confirmed, try Cursor.sequence(client.cursor))
        let stream = gateway.stream(
            app: Self.app, client: client.name, token: client.token, from: client.cursor)
        guard stream.head()?.status == 200 else {
            throw TestFailure("\(client.name): no stream; \(gateway.standardErrorTail)")
        }
        streams[number] = stream
        openedAt[number] = model.changes.keys.max() ?? 2
        model.clients[number].isFollowing = true
        // Wait for its catch-up notification or its current position.
        while model.clients[number].lastID < openedAt[number] ?? 0 {
            guard case .block(let block) = stream.next(timeout: 30) else {
                throw TestFailure("\(client.name): the stream ended")
            }
            try take(block, number)
        }
    }

    private func take(_ block: ServerSentEvent, _ number: Int) throws {
        if let data = block.data {
            let claims = try claims(of: data)
            model.clients[number].heard.append(
                .init(claims, isCatchUp: claims.sequence <= openedAt[number] ?? 0))
        }
        if let id = block.id {
            model.clients[number].cursor = id
            model.clients[number].lastID = try Cursor.sequence(id)
        }
    }

    /// Reads the notifications that arrived on streams.
    func listen() throws {
        for (number, stream) in streams {
            for block in stream.takeAll() { try take(block, number) }
        }
    }

    /// Waits until the streams of these clients have reached the head of the log.
    func settle(_ numbers: some Sequence<Int>) throws {
        let head = model.changes.keys.max() ?? 0
        for number in numbers {
            guard let stream = streams[number] else { continue }
            while model.clients[number].lastID < head {
                guard case .block(let block) = stream.next(timeout: 40) else {
                    throw TestFailure("c\(number)'s stream does not reach \(head)")
                }
                try take(block, number)
            }
        }
        try listen()
    }

    var followers: [Int] { streams.keys.sorted() }

    /// Closes streams that have reached the head; some of them come back later.
    func leave(_ numbers: [Int]) throws {
        try settle(numbers)
        for number in numbers {
            streams[number]?.close()
            _ = streams[number]?.waitForEnd()
            streams[number] = nil
            model.clients[number].isFollowing = false
        }
        // The gateway notices the close only after a while.
        for number in numbers {
            for _ in 0..<400 {
                let open = try explain(client: number)["streams"]?.arrayValue
                if open == [] { break }
                pause(seconds: 0.01)
            }
        }
    }

    func comeBack(_ numbers: [Int]) throws {
        for number in numbers { try follow(number) }
    }

    // MARK: Polls and acknowledgements

    func poll(_ number: Int, kind: String? = nil) throws {
        let client = model.clients[number]
        let base = "/v1/apps/\(Self.app)/clients/\(client.name)/reloads"
        let answer = try PollAnswer(
            http.request(
                "GET", base + (kind.map { "?kind=\($0)" } ?? ""), token: client.token,
                headers: [("Last-Event-ID", client.cursor)]))
        let heard = try answer.notifications.map {
            ExplainModel.Heard(try claims(of: $0), isCatchUp: true)
        }
        let position = try Cursor.sequence(answer.cursor)
        let since = try Cursor.sequence(client.cursor)
        // The poll reports everything that affects it since its cursor.
        for item in client.items where kind == nil || kind == item.kind {
            let missed = model.changes(of: item, client).contains {
                $0 > (item == .set ? client.setConfirmed : since)
            }
            guard !missed || heard.contains(where: { $0.names(item) }) else {
                throw TestFailure("\(client.name) was not told of \(item) by its poll")
            }
        }
        model.clients[number].polled[kind ?? ""] = position
        guard kind == nil else { return }
        model.clients[number].confirmed = max(client.confirmed, since)
        model.clients[number].cursor = answer.cursor
    }

    func acknowledge(_ number: Int, sets: Bool) throws {
        let client = model.clients[number]
        var body: JSONObject = ["cursor": .string(client.cursor)]
        if sets { body["recommendations"] = ["detail"] }
        let answer = try http.request(
            "POST", "/v1/apps/\(Self.app)/clients/\(client.name)/acks", token: client.token,
            body: JSONValue.object(body).text)
        guard answer.status == 204 else { throw TestFailure(answer.text) }
        let sequence = try Cursor.sequence(client.cursor)
        model.clients[number].confirmed = max(client.confirmed, sequence)
        if sets, client.items.contains(.set) {
            model.clients[number].setConfirmed = max(client.setConfirmed, sequence)
        }
    }

    // MARK: Changes

    /// Returns changes such that no device is affected by two of them.
    func someChanges(_ count: Int) -> [ExplainModel.Posted] {
        var posted: [ExplainModel.Posted] = []
        var concerned: Set<String> = []
        var hasSet = false
        while posted.count < count {
            switch random.below(20) {
            case 0...2:
                posted.append(
                    .init(
                        entity: "Account", id: nil, operation: "update",
                        account: "a\(random.below(5))"))
            case 3:
                posted.append(.init(entity: "Nobody", id: "1", operation: "update", account: nil))
            case 4...8:
                let character = "l\(random.below(Self.lively))"
                for _ in 0...random.below(3) where posted.count < count {
                    posted.append(
                        .init(
                            entity: "Character", id: character, operation: "update",
                            account: nil))
                }
            default:
                let isSet = !hasSet && random.happens(10)
                let change = ExplainModel.Posted(
                    entity: "Character", id: "h\(random.below(Self.common))",
                    operation: isSet ? random.pick(["insert", "delete"]) : "update", account: nil)
                let devices = model.clients.filter { client in
                    !client.pushTokens.isEmpty
                        && client.items.contains { change.concerns($0, of: client) }
                }.map(\.name)
                guard concerned.isDisjoint(with: devices) else { continue }
                concerned.formUnion(devices)
                if isSet { hasSet = true }
                posted.append(change)
            }
        }
        return posted
    }

    /// Posts changes at once, and waits until all pushes for them have been answered.
    func post(_ posted: [ExplainModel.Posted]) throws {
        let batch = posted.map { change -> JSONValue in
            events += 1
            var data: JSONObject = [
                "entity": .string(change.entity), "operation": .string(change.operation),
            ]
            if let id = change.id { data["id"] = .string(id) }
            if let account = change.account { data["attributes"] = ["account": .string(account)] }
            return [
                "specversion": "1.0", "type": "changed", "source": "test",
                "id": .string("\(events)"), "data": .object(data),
            ]
        }
        let answer = try http.post(batch, app: Self.app, token: push.backend)
        guard answer.status == 202, let last = answer["sequence"]?.integerValue else {
            throw TestFailure(answer.text)
        }
        let first = UInt64(last) + 1 - UInt64(posted.count)
        for (place, change) in posted.enumerated() {
            model.changes[first + UInt64(place)] = change
        }
        try settlePushes(first...UInt64(last))
    }

    private func settlePushes(_ sequences: ClosedRange<UInt64>) throws {
        for sequence in sequences {
            guard
                let change = model.changes[sequence],
                model.clients.contains(where: { client in
                    !client.pushTokens.isEmpty
                        && client.items.contains { change.concerns($0, of: client) }
                })
            else { continue }
            for round in 0... {
                let reasons = try explain(change: sequence)["outcomes"]?.objectValue?["withheldFor"]
                let isMoving =
                    reasons?.arrayValue?.contains {
                        let reason = $0.objectValue?["reason"]?.stringValue
                        return reason == "under-way" || reason == "queue"
                    } ?? true
                if !isMoving { break }
                guard round < 1_000 else { throw TestFailure("\(sequence) stays under way") }
                pause(seconds: 0.01)
            }
        }
        notePushes(upTo: sequences.upperBound)
    }

    private var taken: [String: Int] = [:]

    /// Records the pushes accepted since the last call; they report all changes so far.
    private func notePushes(upTo head: UInt64) {
        let devices = push.apns.record.devices
        for number in model.clients.indices {
            for (type, token) in model.clients[number].pushTokens {
                let count = devices[token]?.taken ?? 0
                if count > taken[token] ?? 0 {
                    taken[token] = count
                    model.clients[number].pushed[type] = head
                }
                if devices[token]?.isDead == true { model.clients[number].dead.insert(type) }
            }
        }
    }

    // MARK: Explaining

    func explain(change sequence: UInt64) throws -> JSONObject {
        let answer = try http.request(
            "GET", "/v1/apps/\(Self.app)/changes/\(sequence)/explain", token: push.backend)
        guard answer.status == 200, let object = answer.json?.objectValue else {
            throw TestFailure("\(answer.status) \(answer.text)")
        }
        return object
    }

    func explain(client number: Int) throws -> JSONObject {
        let answer = try http.request(
            "GET", "/v1/apps/\(Self.app)/clients/c\(number)/explain", token: push.backend)
        guard answer.status == 200, let object = answer.json?.objectValue else {
            throw TestFailure("\(answer.status) \(answer.text)")
        }
        return object
    }
}

extension ExplainModel.Tally {
    /// The tally in an explanation.
    init(_ explanation: JSONObject) {
        let outcomes = explanation["outcomes"]?.objectValue ?? [:]
        confirmed = Int(outcomes["confirmed"]?.integerValue ?? -1)
        withheld = Int(outcomes["withheld"]?.integerValue ?? -1)
        unreachable = Int(outcomes["unreachable"]?.integerValue ?? -1)
        for member in outcomes["sentBy"]?.objectValue?.members ?? [] {
            sent[member.name] = Int(member.value.integerValue ?? -1)
        }
        for entry in outcomes["collapsedInto"]?.arrayValue ?? [] {
            let sequence = entry.objectValue?["sequence"]?.integerValue ?? -1
            collapsed[UInt64(max(0, sequence))] = Int(
                entry.objectValue?["holders"]?.integerValue ?? -1)
        }
    }
}
