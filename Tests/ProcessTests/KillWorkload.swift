import GatewayTestSupport
import WidgetModel

/// What happens to the daemon until it is killed: writers, registrations, catalogs, pollers and
/// streams, each on a thread of its own.
final class KillWorkload: Sendable {
    /// An event and the character it is about.
    struct Change: Sendable {
        let source: String
        let id: String
        let character: String

        var name: String { "\(source) \(id)" }
        var json: JSONValue {
            event(source: source, id: id, entity: "Character", key: character)
        }
    }

    /// What was under way when the daemon died, and what was answered before.
    struct Record: Sendable {
        var answers = 0
        var isStopped = false
        /// Posts without an answer, each to be taken whole or not at all.
        var unanswered: [[Change]] = []
        var answered: [Change] = []
        /// New clients of this round answered 201: characters and the cursor they got.
        var registered: [String: (characters: [String], cursor: String)] = [:]
        /// The registration without an answer.
        var unansweredRegistration: (client: String, document: JSONValue)?
        /// Catalogs by variant: the last one answered, and the one after it without an answer.
        var catalog: String?
        var unansweredCatalog: String?
        /// Clients whose new registration was not answered.
        var unsure: Set<Int> = []
    }

    let record = TestHTTPMonitor(Record())
    private let gateway: GatewayProcess
    private let cast: KillCast
    private let round: Int
    private let seed: UInt64

    init(_ gateway: GatewayProcess, _ cast: KillCast, round: Int, seed: UInt64) {
        self.gateway = gateway
        self.cast = cast
        self.round = round
        self.seed = seed
    }

    /// Works until so many posts were answered, then calls `kill`, which must end the daemon.
    func run(untilAnswers count: Int, kill: () -> Void) throws {
        let done = TestHTTPMonitor<Result<Void, any Error>?>(nil)
        let parts = workers
        let (seed, cast) = (seed, cast)
        onThread {
            let result = Result {
                try onThreads(parts.count) { number in
                    do {
                        try parts[number](SeededGenerator(seed: seed &+ UInt64(number)))
                    } catch is TestHTTPError {
                        // The daemon is gone.
                    } catch {
                        cast.model.update { $0.require(false, "worker \(number): \(error)") }
                    }
                }
            }
            done.update { $0 = result }
        }
        let reached = record.wait(seconds: 30) { $0.answers >= count ? true : nil }
        cast.model.update { $0.require(reached == true, "the daemon stopped answering posts") }
        kill()
        record.update { $0.isStopped = true }
        guard let result = done.wait(seconds: 60, { $0 }) else {
            throw WireFault(what: "a client still waits for a daemon that is dead")
        }
        try result.get()
    }

    private var isStopped: Bool { record.update { $0.isStopped } }

    private typealias Worker = @Sendable (SeededGenerator) throws -> Void

    private var workers: [Worker] {
        var workers: [Worker] = (0..<4).map { number in
            { try self.write(number, $0) }
        }
        workers.append { try self.register($0) }
        workers.append { try self.putCatalogs($0) }
        for poller in 0..<KillCast.pollerCount {
            workers.append { _ in try self.poll(KillCast.streamCount + poller) }
        }
        for stream in 0..<KillCast.streamCount {
            workers.append { try self.hold(stream, $0) }
        }
        return workers
    }

    // MARK: Writers

    private func write(_ number: Int, _ generator: SeededGenerator) throws {
        var generator = generator
        let http = gateway.http(number == 3 ? .two : .one, timeoutSeconds: 20)
        var (last, count) = (cast.model.update { $0.head }, 0)
        while !isStopped {
            let size = number < 2 ? 1 : Int.random(in: 1...12, using: &generator)
            let changes = (0..<size).map { place in
                Change(
                    source: "writer-\(number)", id: "\(round)-\(count + place)",
                    character: KillCast.characters.randomElement(using: &generator) ?? "")
            }
            count += size
            let answer: TestHTTPAnswer
            do {
                answer = try http.post(changes.map(\.json), app: KillCast.app, token: cast.backend)
            } catch {
                record.update { $0.unanswered.append(changes) }
                return
            }
            last = try take(answer, changes, after: last)
        }
    }

    private func take(
        _ answer: TestHTTPAnswer, _ changes: [Change], after last: UInt64
    ) throws -> UInt64 {
        guard answer.status == 202, let number = answer["sequence"]?.integerValue else {
            throw WireFault(what: "a post was answered \(answer.status): \(answer.text)")
        }
        let sequence = UInt64(number)
        cast.model.update { model in
            model.require(
                answer["accepted"]?.integerValue == Int64(changes.count)
                    && answer["duplicates"]?.integerValue == 0,
                "new events were answered \(answer.text)")
            let first = sequence - UInt64(changes.count) + 1
            model.require(first > last, "\(first) was given out after \(last)")
            for (place, change) in changes.enumerated() {
                model.accepted(change.name, key: change.character, at: first + UInt64(place))
            }
        }
        record.update {
            $0.answers += 1
            $0.answered += changes
        }
        return sequence
    }

    // MARK: Registrations and catalogs

    private func register(_ generator: SeededGenerator) throws {
        var generator = generator
        let http = gateway.http(.two, timeoutSeconds: 20)
        var count = 0
        while !isStopped {
            let client = "new-\(round)-\(count)"
            count += 1
            let characters = KillCast.choice(&generator)
            let document = KillCast.document(client, characters)
            let answer: TestHTTPAnswer
            do {
                answer = try http.register(
                    client, app: KillCast.app, token: cast.backend, document)
            } catch {
                record.update { $0.unansweredRegistration = (client, document) }
                return
            }
            guard answer.status == 201, let cursor = answer["cursor"]?.stringValue else {
                throw WireFault(what: "\(client) was answered \(answer.status): \(answer.text)")
            }
            let sequence = try Cursor.sequence(cursor)
            cast.model.update { $0.registered(client, characters, at: sequence) }
            cast.registered.update { $0[client] = document }
            record.update { $0.registered[client] = (characters, cursor) }
        }
    }

    private func putCatalogs(_ generator: SeededGenerator) throws {
        var generator = generator
        let http = gateway.http(timeoutSeconds: 20)
        while !isStopped {
            let variant = Int.random(in: 0..<1_000_000_000, using: &generator)
            let document = KillCast.catalog(variant: variant)
            record.update { $0.unansweredCatalog = document }
            let answer = try http.request(
                "PUT", "/v1/apps/\(KillCast.app)/catalog", token: cast.backend,
                headers: [("Content-Type", "application/yaml")], body: document)
            guard answer.status == 200, let sequence = answer["sequence"]?.integerValue else {
                throw WireFault(what: "a catalog was answered \(answer.status): \(answer.text)")
            }
            cast.model.update {
                $0.accepted("catalog \(variant)", key: "", at: UInt64(sequence))
            }
            record.update {
                $0.unansweredCatalog = nil
                $0.catalog = document
            }
            pause(seconds: 0.05)
        }
    }

    // MARK: Clients

    private func poll(_ index: Int) throws {
        let http = gateway.http(index % 2 == 0 ? .one : .two, timeoutSeconds: 20)
        while !isStopped { try cast.poll(http, for: index) }
    }

    private func hold(_ index: Int, _ generator: SeededGenerator) throws {
        var generator = generator
        let http = gateway.http(timeoutSeconds: 20)
        while !isStopped {
            let client = cast.client(index)
            let stream = gateway.stream(
                app: KillCast.app, client: client.name, token: client.token, from: client.cursor,
                version: index % 3 == 0 ? .two : .one)
            defer { stream.close() }
            if Int.random(in: 0..<3, using: &generator) == 0 {
                stream.cut(atByte: Int.random(in: 0...4_000, using: &generator))
            }
            reading: while !isStopped {
                switch stream.next(timeout: 0.1) {
                case .block(let block):
                    try cast.take(block, for: index)
                    if Int.random(in: 0..<20, using: &generator) == 0 {
                        try change(http, index, &generator)
                    }
                case .ended: break reading
                case nil: continue
                }
            }
        }
    }

    private func change(
        _ http: TestHTTP, _ index: Int, _ generator: inout SeededGenerator
    ) throws {
        do {
            try cast.change(http, index, to: KillCast.choice(&generator))
        } catch {
            record.update { _ = $0.unsure.insert(index) }
            throw error
        }
    }
}
