import Foundation
import GatewayCore
import GatewayDelivery
import GatewaySigning
import GatewayStorage
import GatewayTLS
import GatewayTestSupport
import NIOCore
import NIOPosix
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer

/// A gateway from its log to its event loops, without ports. A test can stop a stream or poll at
/// each step between its request and its first frame.
final class StreamFixture: Sendable {
    static let app = "com.mygame"
    static let catalog = """
        app: \(app)
        entities: { Character: { properties: [health] }, Account: { properties: [turn] } }
        intents: { One: { parameters: [{ name: character, type: Character }] } }
        widgets:
          - kind: detail
            configuration: appIntent
            intent: One
            families: [systemSmall]
            dependsOn: [{ entity: Character, match: { id: $character } }]
            recommendations: { dependsOn: [{ entity: Character, match: { id: $character } }] }
          - kind: status
            configuration: static
            families: [systemSmall]
            dependsOn: [{ entity: Account, match: { id: $client.account } }]
        """
    /// The catalog with Live Activities, too.
    static let battles =
        catalog + """

            activities:
              - type: Battle
                attributes: [hero]
                dependsOn: [{ entity: Character, match: { id: $hero } }]
                content: { url: "https://a.test/content" }
            """

    let store: SQLiteStore
    let engine: Engine
    let loops: ShardLoops
    let cursors: CursorCodec
    let metrics = GatewayMetrics()
    let admission: StreamAdmission
    private let group: MultiThreadedEventLoopGroup

    /// A gateway with two event loops.
    ///
    /// - Parameters:
    ///   - store: An open store; `nil` creates one in memory.
    ///   - clients: The clients that may open streams.
    ///   - pushes: Whether the gateway pushes, on the first of its loops.
    ///   - isShared: Whether it is one of several gateways, as if it had always caught up.
    ///   - configure: Changes the configuration.
    init(
        _ store: SQLiteStore? = nil, clients: [String] = ["phone", "tablet"],
        clock: GatewayClock = .system, pushes: Bool = false,
        isShared: Bool = false,
        configure: (inout GatewayOperations.GatewayConfiguration) -> Void = { _ in }
    ) throws {
        let store = try store ?? SQLiteStore(inMemory: StoreConfiguration())
        self.store = store
        group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        var configuration = try GatewayOperations.GatewayConfiguration.test()
        // Versions are sealed all the time, so that every test has some.
        configuration.coreLimits.versionRunKeys = 2
        configure(&configuration)
        engine = try Engine.test(
            configuration, store: store, clock: clock, pushLoop: pushes ? group.next() : nil,
            loops: Array(group.makeIterator()), metrics: metrics,
            leader: isShared ? NobodyElse() : nil)
        (loops, cursors) = (engine.loops, engine.cursors)
        // A client certificate with the client's name takes the place of its token.
        let grants = clients.map {
            CertificateGrant(uri: $0, app: Self.app, scopes: [.client])
        }
        let authorizer = Authorizer(
            access: AccessState(
                verifier: CachedTokenVerifier(
                    TokenVerifier(policy: TokenPolicy(issuers: [], audiences: []))),
                grants: CertificateGrants(grants), revision: AccessRevision(), now: { 0 }))
        admission = StreamAdmission(
            engine: engine, authorizer: authorizer,
            requestLimits: RequestLimits(
                rates: RateLimits(), bytesInWork: 1 << 20, metrics: GatewayMetrics(),
                now: engine.clock.now),
            date: HTTPDateCache(clock: engine.clock),
            streamSettings: configuration.streams, streamsMax: 100,
            tickets: StreamTickets(leader: nil, now: engine.clock.now))
    }

    /// Runs `body` with a gateway that has the catalog and these clients, each with the character
    /// that it shows, and with the cursor of the last of them; then stops the gateway.
    static func running(
        _ clients: [(String, String)] = [("phone", "panda")],
        clock: GatewayClock = .system,
        _ body: (StreamFixture, _ cursor: String) async throws -> Void
    ) async throws {
        let granted = Set(clients.map { $0.0 } + ["phone", "tablet"])
        let fixture = try StreamFixture(clients: Array(granted), clock: clock)
        try await fixture.putCatalog()
        var cursor = ""
        for (name, character) in clients {
            cursor = try await fixture.register(name, character: character)
        }
        try await body(fixture, cursor)
        try await fixture.stop()
    }

    func stop() async throws {
        try await store.close()
        for shard in loops.all { try await shard.loop.submit { shard.stop() }.get() }
        try await group.shutdownGracefully()
    }

    // MARK: Backends and clients

    func putCatalog(_ text: String = StreamFixture.catalog) async throws {
        try await engine.putCatalog(text, app: Self.app)
    }

    /// Registers a client with one widget of `character` and one of its account; returns the
    /// cursor.
    @discardableResult
    func register(
        _ client: String, character: String = "panda", account: String = "1",
        delivery: JSONValue = [["type": "stream"]]
    ) async throws -> String {
        let outcome = try await engine.clients.register(
            Self.key(client),
            .document([
                "platform": "iOS", "attributes": ["account": .string(account)],
                "delivery": delivery,
                "widgets": [
                    [
                        "kind": "detail", "family": "systemSmall",
                        "parameters": ["character": .string(character)],
                    ], ["kind": "status", "family": "systemSmall", "parameters": [:]],
                ],
            ]), by: .backend)
        return cursors.text(outcome.position)
    }

    /// Posts a change and waits until every event loop has applied it.
    @discardableResult
    func change(_ entity: String, _ id: String) async throws -> UInt64 {
        let event = CloudEvent(
            source: "test", id: UUID().uuidString, change: Change(entity: entity, id: id))
        let sequence = try await engine.changes.post([event], app: Self.app).sequence
        for loop in loops.all { try await loop.reached(sequence) }
        return sequence
    }

    static func key(_ client: String) -> ClientKey { ClientKey(app: app, client: client) }

    // MARK: Streams and polls

    /// Admits a request, as the thread that reads it does.
    func admit(
        _ client: String, since cursor: String?, stream: Bool = true
    ) throws -> StreamAdmission.Admitted {
        try admission.admit(
            admission.identify(
                ReloadsRequest(
                    path: "/v1/apps/\(Self.app)/clients/\(client)/reloads", authorization: nil,
                    lastEventID: cursor, wantsStream: stream), from: nil,
                certificateURIs: { [client] }))
    }

    /// Opens an admitted stream on an event loop, as the gateway does a little later.
    func open(_ admitted: StreamAdmission.Admitted, on loop: Int = 0) async throws -> Reader {
        let shard = loops.all[loop]
        let reader = Reader(shard)
        let failure = try await shard.loop.submit { [admission] () -> ShardLoop.Failure? in
            do throws(ShardLoop.Failure) {
                reader.id = try admission.open(admitted.opening, on: shard) { _ in
                    .sink(reader, wantsHeartbeat: true)
                }
                return nil
            } catch {
                return error
            }
        }.get()
        if let failure { throw failure }
        return reader
    }

    /// Polls once; returns the stale content as text, and the new cursor.
    func poll(
        _ admitted: StreamAdmission.Admitted, on loop: Int = 0, wait: Int = 0
    ) async throws -> (stale: [String], cursor: String) {
        let answer = try await LongPoll.answer(
            admitted, wait: wait, on: loops.all[loop], admission, channel: nil)
        return (answer.stale.words, cursors.text(answer.position, in: answer.epoch))
    }

    /// Whether a stream, or a poll that waits, is recorded for a client.
    func hasStream(_ client: String) -> Bool {
        engine.registry.channel(Self.key(client)) == .stream
    }

    /// The reader of one stream. Used on its event loop, except ``said()``.
    // Sound: everything is touched on the shard's loop only.
    final class Reader: EventSink, @unchecked Sendable {
        private let shard: ShardLoop
        fileprivate var id: StreamID?
        private var parser = EventStreamParser()
        private var blocks: [ServerSentEvent] = []
        private var isEnded = false

        fileprivate init(_ shard: ShardLoop) { self.shard = shard }

        func send(_ blocks: ByteBuffer) -> SinkResult {
            self.blocks += (try? parser.parse(blocks.readableBytesView)) ?? []
            return .sent
        }

        func end(_ farewell: ByteBuffer?) {
            isEnded = true
            if let id { shard.loop.execute { self.shard.close(id) } }
        }

        /// Ends the stream from the reader's side.
        func close() async throws {
            try await shard.loop.submit { if let id = self.id { self.shard.close(id) } }.get()
        }

        /// Returns the blocks received after the first `count`.
        func received(after count: Int) async throws -> [ServerSentEvent] {
            try await shard.loop.submit { Array(self.blocks.dropFirst(count)) }.get()
        }

        /// Returns the stale content reported so far as text, the last id, and whether the stream
        /// has ended.
        func said() async throws -> (stale: [String], id: String?, isEnded: Bool) {
            let (blocks, isEnded) = try await shard.loop.submit {
                (self.blocks, self.isEnded)
            }.get()
            let stale = try blocks.compactMap(\.data).map { data -> [String] in
                let notification = try claims(of: data)
                return notification.all
                    ? ["all"]
                    : notification.reload.map { reload in
                        ([reload.kind] + reload.parameters.map { $0.value ?? "null" })
                            .joined(separator: " ")
                    }
            }
            return (stale.flatMap { $0 }, blocks.compactMap(\.id).last, isEnded)
        }
    }
}

extension StaleSet {
    /// The stale content as text.
    var words: [String] {
        all
            ? ["all"]
            : names.map { name in
                ([name.kind] + name.parameters.map { $0.value ?? "null" }).joined(separator: " ")
            }
    }
}

/// A gateway of several that has nobody to wait for.
struct NobodyElse: LogLeader {
    var onAsked: @Sendable () -> Void = {}

    var isHere: Bool {
        onAsked()
        return true
    }

    var state: ClusterState { ClusterState(objection: nil) }

    func barrier() async throws {}

    func reportLoss() {}

    func pass(_ request: PassedRequest) async throws -> PassedAnswer {
        throw EngineError.cluster(.noWrites)
    }

    func present(_ claims: [String: [String]], of key: ClientKey) async throws {}

    func streams(of clients: [ClientKey], at node: String) async -> [[StreamStatus]] { [] }
}
