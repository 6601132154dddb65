import GatewayTestSupport
import WidgetModel

/// Holds the restarted daemon against what was answered before it was killed.
struct KillJudgement {
    private let gateway: GatewayProcess
    private let cast: KillCast
    private let record: KillWorkload.Record
    private let seed: UInt64

    init(_ gateway: GatewayProcess, _ cast: KillCast, _ workload: KillWorkload, seed: UInt64) {
        self.gateway = gateway
        self.cast = cast
        record = workload.record.update { $0 }
        self.seed = seed
    }

    func judge() throws {
        let http = gateway.http()
        var generator = SeededGenerator(seed: seed)
        try judgeUnansweredPosts(http)
        try judgeDuplicates(http, &generator)
        try judgeRegistrations(http, &generator)
        try judgeCatalog(http)
        for index in record.unsure {
            try cast.change(http, index, to: cast.client(index).characters)
        }
        try judgePollers(http)
        try judgeStreams()
    }

    private func require(_ holds: Bool, _ text: @autoclosure () -> String) {
        let text = holds ? "" : text()
        cast.model.update { $0.require(holds, text) }
    }

    // MARK: The log

    /// A post without an answer is in the log whole or not at all.
    private func judgeUnansweredPosts(_ http: TestHTTP) throws {
        for changes in record.unanswered {
            let answer = try http.post(
                changes.map(\.json), app: KillCast.app, token: cast.backend)
            let accepted = answer["accepted"]?.integerValue ?? -1
            let duplicates = answer["duplicates"]?.integerValue ?? -1
            let count = Int64(changes.count)
            require(
                answer.status == 202
                    && ((accepted, duplicates) == (count, 0)
                        || (accepted, duplicates) == (0, count)),
                "a post without an answer was taken in part: \(answer.text)")
            let sequence = UInt64(answer["sequence"]?.integerValue ?? 0)
            cast.model.update { model in
                for (place, change) in changes.enumerated() {
                    model.accepted(
                        change.name, key: change.character,
                        at: sequence - UInt64(changes.count - 1 - place))
                }
            }
        }
    }

    private func judgeDuplicates(_ http: TestHTTP, _ generator: inout SeededGenerator) throws {
        let all = record.answered.suffix(1_000)
        if !all.isEmpty {
            let answer = try http.post(all.map(\.json), app: KillCast.app, token: cast.backend)
            require(
                answer.status == 202 && answer["accepted"]?.integerValue == 0
                    && answer["duplicates"]?.integerValue == Int64(all.count),
                "\(all.count) events that were answered 202 came back as \(answer.text)")
        }
        let sequences = cast.model.update { $0.sequences }
        for change in record.answered.shuffled(using: &generator).prefix(5) {
            let answer = try http.post([change.json], app: KillCast.app, token: cast.backend)
            let sequence = sequences[change.name] ?? 0
            require(
                answer["sequence"]?.integerValue == Int64(sequence),
                "\(change.name) was at \(sequence) and came back as \(answer.text)")
        }
    }

    // MARK: Registrations and the catalog

    private func judgeRegistrations(
        _ http: TestHTTP, _ generator: inout SeededGenerator
    ) throws {
        let all = cast.registered.update { $0 }
        let older = all.keys.sorted().shuffled(using: &generator).prefix(5)
        for client in Set(record.registered.keys).union(older).sorted() {
            let answer = try get(http, client)
            require(
                answer.status == 200 && Self.widgets(answer.json) == Self.widgets(all[client]),
                "\(client) was answered 201 and is now \(answer.status): \(answer.text)")
        }
        if let (client, document) = record.unansweredRegistration {
            let answer = try get(http, client)
            require(
                answer.status == 404
                    || answer.status == 200
                        && Self.widgets(answer.json) == Self.widgets(document),
                "\(client) is half registered: \(answer.status) \(answer.text)")
        }
    }

    private func get(_ http: TestHTTP, _ client: String) throws -> TestHTTPAnswer {
        try http.request("GET", "/v1/apps/\(KillCast.app)/clients/\(client)", token: cast.backend)
    }

    private static func widgets(_ document: JSONValue?) -> [JSONValue?]? {
        document?.objectValue?["widgets"]?.arrayValue?.map { $0.objectValue?["parameters"] }
    }

    private func judgeCatalog(_ http: TestHTTP) throws {
        guard let answered = record.catalog else { return }
        let answer = try http.request(
            "GET", "/v1/apps/\(KillCast.app)/catalog", token: cast.backend)
        require(
            answer.text == answered || answer.text == record.unansweredCatalog,
            "the catalog in force is not the one last answered: \(answer.text.prefix(40))")
    }

    // MARK: Clients

    private func judgePollers(_ http: TestHTTP) throws {
        for poller in 0..<KillCast.pollerCount {
            let index = KillCast.streamCount + poller
            try cast.poll(http, for: index)
            requireNothingOwed(to: cast.client(index).name)
        }
        let clients = record.registered.keys.sorted()
        let tokens = try gateway.clientTokens(app: KillCast.app, clients: clients)
        for (client, token) in zip(clients, tokens) {
            guard let (characters, cursor) = record.registered[client] else { continue }
            let answer = try http.poll(client, app: KillCast.app, token: token, since: cursor)
            for notification in answer.notifications {
                try cast.hear(notification, client, Set(characters))
            }
            requireNothingOwed(to: client)
        }
    }

    private func judgeStreams() throws {
        let streams = (0..<KillCast.streamCount).map { index in
            let client = cast.client(index)
            return gateway.stream(
                app: KillCast.app, client: client.name, token: client.token, from: client.cursor,
                version: index % 2 == 0 ? .one : .two)
        }
        for (index, stream) in streams.enumerated() {
            let name = cast.client(index).name
            while !cast.model.update({ $0.owed(to: name) }).isEmpty {
                guard case .block(let block) = stream.next(timeout: 10) else { break }
                try cast.take(block, for: index)
            }
            requireNothingOwed(to: name)
            stream.close()
        }
    }

    private func requireNothingOwed(to client: String) {
        let owed = cast.model.update { $0.owed(to: client) }
        require(owed.isEmpty, "\(client) was never told of \(owed.joined(separator: ", "))")
    }
}
