import Foundation
import GatewayCore
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayFleet
@testable import GatewayPostgres
@testable import GatewayRecords

/// A follower without a server: the test hands it batches and answers its readings.
@Suite struct FleetFollowerTests {
    private final class Fixture: Sendable {
        let follower: FleetFollower
        let registry = Registry(streamsMax: 4)
        let catalogs: AppCatalogs
        let hashes: FleetHashes
        let seal: RegistrationSeal
        let failures = TestHTTPMonitor<[LogApplication.Unreadable]>([])
        let unreadable = TestHTTPMonitor<[String]>([])
        private let readings = Mutex<[(RowReading, @Sendable (RowOutcome) -> Void)]>([])
        private let head = Mutex<Int64>(0)

        init() throws {
            hashes = try FleetHashes(secret: Array(repeating: 7, count: 32))
            let key = SecretBytes(count: FleetKey.byteCount) { _ in true }
            seal = RegistrationSeal(FleetKey(try #require(key)))
            catalogs = AppCatalogs(
                CatalogState(decider: Decider(hash: hashes.store.keys, limits: Limits())),
                hashes: hashes.store, limits: Limits())
            let loops = ShardLoops([])
            // Whoever sleeps wakes at once, and the time has come.
            let time = TestHTTPMonitor<Int64>(0)
            let clock = GatewayClock(
                now: { time.update { $0 } }, wallMilliseconds: { 0 },
                sleep: { until in time.update { $0 = until } })
            let failures = failures
            follower = FleetFollower(
                LogApplication(
                    hashes: hashes.store,
                    decider: Decider(hash: hashes.store.keys, limits: Limits()), position: 0),
                from: LogPosition(last: 0, chain: 0),
                catalogs: catalogs, registry: registry, accepted: AcceptedChanges(startedAt: 0),
                publisher: LogPublisher(
                    loops: loops, push: nil,
                    sealer: VersionSealer(VersionCompactor(floor: 0), loops: loops, push: nil),
                    tracing: nil),
                seal: seal, hashes: hashes, pushes: nil, history: BatchHistory(), clock: clock,
                onUnreadableRow: { [unreadable] key, _ in
                    unreadable.update { $0.append(key.client) }
                }
            ) { failure in failures.update { $0.append(failure) } }
        }

        /// Hands over the next batch.
        func receive(_ records: LogRecord...) {
            let first = head.withLock { $0 } + 1
            let last = first + Int64(records.count) - 1
            head.withLock { $0 = last }
            follower.receive(
                LogBatch(
                    first: first, position: LogPosition(last: last, chain: 0), node: 1, at: 5,
                    records: records)
            ) { reading, complete in
                self.readings.withLock { $0.append((reading, complete)) }
            }
        }

        /// Answers the oldest reading, once there is one.
        func answer(_ outcome: (RowReading) throws -> RowOutcome) async throws {
            while readings.withLock({ $0.isEmpty }) { await Task.yield() }
            let (reading, complete) = readings.withLock { $0.removeFirst() }
            complete(try outcome(reading))
        }

        /// Returns a row of a client with one attribute.
        func row(_ client: String, hero: String) throws -> RegistrationRow {
            let key = hashes.key(of: EngineFixture.key(client))
            var stored = StoredRegistration(registration: ClientRegistration(platform: "iOS"))
            stored.attributes.backend["hero"] = [hero]
            return RegistrationRow(
                key: key, revision: 2,
                content: RegistrationContent(
                    digest: 1, payload: try seal.close(Array(stored.payload), of: key)),
                ownTokens: [], updatedAt: 5)
        }

        func record(of client: String) -> LogRecord {
            let key = hashes.key(of: EngineFixture.key(client))
            return LogRecord(
                app: key.app,
                .registration(
                    .init(part: key.part, client: client, revision: 2, digest: 1)))
        }
    }

    /// The end of the first batch of a minute is a position that all nodes choose.
    @Test func `nodes compare their versions once a minute of the log`() async throws {
        let nodes = [try Fixture(), try Fixture()]
        func receive(_ sequence: Int64, minute: Int64, _ nodes: [Fixture]) {
            for node in nodes {
                node.follower.receive(
                    LogBatch(
                        first: sequence, position: LogPosition(last: sequence, chain: 1), node: 1,
                        at: minute * 60_000 + sequence, records: [reload])
                ) { _, _ in }
            }
        }
        receive(1, minute: 7, nodes)
        receive(2, minute: 7, nodes)
        #expect(nodes.allSatisfy { $0.follower.windowDigest == nil })
        receive(3, minute: 8, nodes)
        receive(4, minute: 8, [nodes[0]])
        try await eventually("both nodes have a digest") {
            nodes.allSatisfy { $0.follower.windowDigest != nil }
        }
        let digests = nodes.map(\.follower.windowDigest)
        #expect(digests[0]?.position == 3)
        #expect(digests[0] == digests[1])
    }

    private let reload = LogRecord(
        app: EngineFixture.app, .reload(scope: Array(LogPayload.reload(.everything))))

    @Test func `who waits for a log that does not come is told so`() async throws {
        let fixture = try Fixture()
        #expect(await !fixture.follower.reached(1))
        fixture.receive(reload)
        #expect(await fixture.follower.reached(1))
        #expect(await !fixture.follower.reached(2))
    }

    @Test func `a batch waits for the rows of the clients that the node holds`() async throws {
        let fixture = try Fixture()
        let key = EngineFixture.key("phone")
        fixture.receive(fixture.record(of: "tablet"), reload)
        #expect(fixture.follower.position == 2)
        #expect(fixture.registry.count == 0)
        fixture.follower.expect(key)
        fixture.receive(fixture.record(of: "phone"), fixture.record(of: "tablet"))
        fixture.receive(reload)
        #expect(fixture.follower.position == 2)
        // The servers are away for a moment.
        try await fixture.answer { _ in .refused(.unavailable) }
        try await fixture.answer { reading in
            guard case .rows(let keys, asOf: 4) = reading else {
                throw TestFailure("\(reading)")
            }
            #expect(keys.map(\.client) == ["phone"])
            #expect(fixture.follower.position == 2)
            return .rows([keys[0]: try fixture.row("phone", hero: "owl")], head: 9)
        }
        #expect(fixture.follower.position == 5)
        #expect(fixture.registry.record(key)?.attributes["hero"] == ["owl"])
        fixture.follower.forget(key)
        #expect(fixture.registry.record(key) != nil)
    }

    @Test func `a client that nobody expects any more is not held`() async throws {
        let fixture = try Fixture()
        let key = EngineFixture.key("phone")
        for _ in 0..<2 { fixture.follower.expect(key) }
        fixture.follower.forget(key)
        fixture.receive(fixture.record(of: "phone"))
        // Removed before the row was read.
        try await fixture.answer { _ in .rows([:], head: 1) }
        fixture.follower.forget(key)
        fixture.receive(fixture.record(of: "phone"))
        #expect(fixture.follower.position == 2)
        #expect(fixture.registry.count == 0)
    }

    @Test func `a record that cannot be applied stops the node`() async throws {
        let fixture = try Fixture()
        fixture.receive(reload)
        fixture.receive(LogRecord(app: EngineFixture.app, .catalog(payload: [1])))
        fixture.receive(reload)
        #expect(fixture.failures.update { $0.map(\.sequence) } == [2])
        #expect(fixture.follower.position == 1)
    }

    @Test func `a row that cannot be read concerns its client only`() async throws {
        let fixture = try Fixture()
        let key = EngineFixture.key("phone")
        fixture.follower.expect(key)
        fixture.receive(fixture.record(of: "phone"))
        try await fixture.answer { reading in
            guard case .rows(let keys, _) = reading else { throw TestFailure("\(reading)") }
            return .rows([keys[0]: try fixture.row("phone", hero: "owl")], head: 1)
        }
        #expect(fixture.registry.record(key) != nil)
        fixture.receive(fixture.record(of: "phone"))
        try await fixture.answer { reading in
            guard case .rows(let keys, _) = reading else { throw TestFailure("\(reading)") }
            var row = try fixture.row("tablet", hero: "owl")
            row.key = keys[0]
            return .rows([keys[0]: row], head: 2)
        }
        #expect(fixture.failures.update { $0.isEmpty })
        #expect(fixture.unreadable.update { $0 } == ["phone"])
        #expect(fixture.registry.count == 0)
        fixture.receive(reload)
        #expect(fixture.follower.position == 3)
    }
}
