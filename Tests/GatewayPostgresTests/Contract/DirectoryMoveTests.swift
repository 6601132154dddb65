import ClusterTestSupport
import Foundation
import GatewayCore
import GatewaySettings
import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayFleet
@testable import GatewayPostgres
@testable import GatewayRecords
@testable import GatewayStorage

/// Data directories of gateways that served, moved to a cluster.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct DirectoryMoveTests {
    @Test func `a fleet goes on from the directory as the gateway would`() async throws {
        let directory = try await MovedDirectory()
        let cluster = try ClusterFixture()
        let outcome = try directory.move(to: cluster)
        #expect((outcome.floor, outcome.head) == (0, 10) && directory.head == 10)
        #expect(outcome.counts?.registrations == 2)

        let node = try await EngineFixture.node(1, of: cluster)
        try await node.reached(directory.head)
        #expect(node.log.head == directory.head)
        try expect(node, isAs: directory)
        try await expectEvents(at: node)

        // What it writes follows, with a cursor that is higher than those before.
        let posted = try await node.changes.post(
            [EngineFixture.event("e")], app: EngineFixture.app)
        #expect(posted.sequence == directory.head + 1 && posted.accepted == 1)
        let old = try #require(Cursor(text: directory.newCursors.held))
        let new = try #require(Cursor(text: node.cursor(posted.sequence)))
        #expect(old < new && old.epoch.ordinal < new.epoch.ordinal)
        #expect(node.engine.cursors.judge(new.text).point == .after(posted.sequence))
        try await expectRegistrations(of: directory, at: node)
        _ = try await node.changes.removeApp(EngineFixture.app)
        try await node.stop()
    }

    private func expect(_ node: EngineFixture, isAs directory: MovedDirectory) throws {
        let document = node.catalogs.document(of: EngineFixture.app)
        #expect(document?.etag == directory.document?.etag && document?.etag != nil)
        #expect(document?.sequence == directory.document?.sequence)
        #expect(node.catalogs.removal(of: EngineFixture.app) == directory.removal)
        let rules = try [node.catalogs.ruleSet(of: EngineFixture.app), directory.rules]
            .map { try #require($0) }
        for hero in ["panda", "fox"] {
            let change = Change(entity: "Hero", id: hero, attributes: ["health": ["1"]])
            let keys = try rules.map {
                "\(try $0.decide(change, limits: Limits()).keys)"
            }
            #expect(keys[0] == keys[1])
        }
        #expect(rules[0].since(kind: "hero") == rules[1].since(kind: "hero"))
    }

    private func expectEvents(at node: EngineFixture) async throws {
        let again = try await node.changes.post(
            ["a", "b", "c", "d"].map { EngineFixture.event($0) }, app: EngineFixture.app)
        #expect((again.accepted, again.duplicates, again.sequence) == (0, 4, 10))
        let error = await #expect(throws: EngineError.self) {
            try await node.changes.post(
                [EngineFixture.event("a", health: "9")], app: EngineFixture.app)
        }
        #expect(error?.code == "event-id-reused")
    }

    private func expectRegistrations(
        of directory: MovedDirectory, at node: EngineFixture
    ) async throws {
        #expect(directory.registrations.count == 2)
        for (client, payload) in directory.registrations {
            let key = EngineFixture.key(client)
            #expect(try await node.log.registration(key)?.payload == payload)
            try await node.log.hold(key)
            #expect(node.registry.record(key)?.client == client)
        }
        #expect(try await node.log.registration(EngineFixture.key("gone")) == nil)
        // It is known by its digest, and found by its attribute.
        #expect(try await !node.register("phone").isNew)
        #expect(
            try await node.log.removeClients(
                of: EngineFixture.app, with: ("hero", "ünï"), limit: 10) == 1)
        #expect(try await node.log.registration(EngineFixture.key("tablet")) == nil)
    }

    @Test func `a cursor of the directory holds up to the end of its epoch`() async throws {
        let directory = try await MovedDirectory()
        let cluster = try ClusterFixture()
        try directory.move(to: cluster)
        let node = try await EngineFixture.node(1, of: cluster)
        try await node.reached(directory.head)
        _ = try await node.changes.post([EngineFixture.event("e")], app: EngineFixture.app)
        let cursors = node.engine.cursors
        func point(_ text: String) async throws -> ResumePoint {
            try await cursors.find(text)
            return cursors.judge(text).point
        }
        #expect(directory.secondStart == 6)
        #expect(try await point(directory.oldCursors.held) == .after(6))
        #expect(try await point(directory.oldCursors.beyond) == .everything)
        #expect(try await point(directory.newCursors.held) == .after(10))
        #expect(try await point(directory.newCursors.beyond) == .everything)
        // Proof of a lost tail there voids nothing for others.
        #expect(try await point(directory.newCursors.held) == .after(10))
        try await node.stop()
    }

    @Test func `no cursor of a copied directory holds`() async throws {
        let directory = try await MovedDirectory()
        try FileManager.default.removeItem(atPath: directory.path + "/store.mark")
        let cluster = try ClusterFixture()
        try directory.move(to: cluster)
        let node = try await EngineFixture.node(1, of: cluster)
        #expect(node.engine.cursors.judge(directory.oldCursors.held).point == .everything)
        #expect(node.engine.cursors.judge(directory.newCursors.held).point == .everything)
        try await node.stop()
    }

    @Test func `a directory whose oldest records are gone is moved from its floor on`()
        async throws
    {
        // The removal, the newer catalog and the event "a" are below the floor.
        let directory = try await MovedDirectory(keepsRows: 5)
        let cluster = try ClusterFixture(slice: 4)
        #expect(try directory.move(to: cluster).floor == 5)
        let node = try await EngineFixture.node(1, of: cluster)
        try await node.reached(directory.head)
        try expect(node, isAs: directory)
        try await expectRegistrations(of: directory, at: node)
        let again = try await node.changes.post(
            ["b", "c", "d"].map { EngineFixture.event($0) }, app: EngineFixture.app)
        #expect((again.accepted, again.duplicates, again.sequence) == (0, 3, 10))
        try await expectFloor(of: cluster, node.registry)
        // As in the directory, what is forgotten is new.
        let posted = try await node.changes.post(
            [EngineFixture.event("a")], app: EngineFixture.app)
        #expect(posted.accepted == 1)
        #expect(node.engine.cursors.judge(directory.oldCursors.held).point == .after(6))
        try await node.stop()
    }

    /// Expects that a node knows nothing of what lies below the floor: for a client that is behind
    /// it everything is stale.
    private func expectFloor(of cluster: ClusterFixture, _ registry: Registry) async throws {
        let keys = try await EngineFixture.keys(of: 2, of: cluster)
        let shard = try #require(keys.removeStart()).state(
            EngineConfiguration(limits: Limits(), streamsPerClient: 4), keys.hashes.store
        ).shard
        let phone = try #require(registry.record(EngineFixture.key("phone")))
        func isStale(_ sequence: UInt64) -> Bool? {
            shard.poll(phone, app: EngineFixture.app, since: .after(sequence), kinds: nil)
                .map { !$0.isEmpty }
        }
        #expect(isStale(4) == true && isStale(5) == false)
    }

    // MARK: Broken off

    private func contents(_ cluster: ClusterFixture) throws -> [String] {
        try cluster.administration().rows(
            """
            SELECT concat_ws(' ', last, first, node, batch, at, body) FROM tg.log
            UNION ALL SELECT 'e' || t::text FROM tg.event t
            UNION ALL SELECT 'c' || t::text FROM tg.catalog t
            UNION ALL SELECT concat_ws(' ', part, app, client, revision, seq, digest, attrs, tokens,
              updated_at, seen_day) FROM tg.registration
            UNION ALL SELECT 'p' || t::text FROM tg.push_address t
            UNION ALL SELECT 'h' || concat_ws(' ', nonce, opened_at, is_void) FROM tg.epoch
            UNION ALL SELECT kind || name FROM tg.secret
            UNION ALL SELECT 'closed ' || closed FROM tg.log_identity ORDER BY 1
            """
        ).map { try $0.text(0) }
    }

    @Test func `a move that is broken off before any portion ends as one that is not`() async throws
    {
        let directory = try await MovedDirectory()
        let whole = try ClusterFixture(slice: 4)
        try directory.move(to: whole, rowsPerPortion: 1)
        let expected = try contents(whole)
        var portion = 0
        var isBroken = true
        while isBroken, portion < 100 {
            portion += 1
            let cluster = try ClusterFixture(slice: 4)
            // Sequences count on when a transaction is rolled back. Every portion asks first.
            try cluster.execute(
                """
                SET ROLE tg_owner;
                CREATE SEQUENCE tg.portions;
                ALTER FUNCTION tg.moving RENAME TO is_moving;
                CREATE FUNCTION tg.moving() RETURNS void LANGUAGE plpgsql AS $$
                BEGIN
                  IF nextval('tg.portions') = \(portion) THEN RAISE 'broken off'; END IF;
                  PERFORM tg.is_moving();
                END $$;
                """)
            var isMarked = false
            do {
                try directory.move(to: cluster, rowsPerPortion: 1) { isMarked = true }
                isBroken = false
            } catch PostgresError.other(_, let message) {
                #expect(message == "broken off" && !isMarked)
                try directory.move(to: cluster, rowsPerPortion: 1) { isMarked = true }
            }
            #expect(try contents(cluster) == expected, "portion \(portion)")
            #expect(isMarked)
        }
        // Three secrets, the epochs, two registrations, ten records, three catalogs; then none is left.
        #expect(portion == 3 + 1 + 2 + 10 + 3 + 1)
    }

    @Test func `a finished move can be repeated, and changes nothing`() async throws {
        let directory = try await MovedDirectory()
        let cluster = try ClusterFixture()
        try directory.move(to: cluster)
        let node = try await EngineFixture.node(1, of: cluster)
        _ = try await node.changes.post([EngineFixture.event("e")], app: EngineFixture.app)
        try await node.stop()
        let before = try contents(cluster)
        var isMarked = false
        #expect(try directory.move(to: cluster) { isMarked = true }.counts == nil)
        #expect(isMarked)
        #expect(try contents(cluster) == before)
        let other = try await MovedDirectory()
        #expect(throws: PostgresError.self) { try other.move(to: cluster) }
    }

    private struct BrokenOff: Error {}

    @Test func `a move goes on neither with another key nor after another start`() async throws {
        let directory = try await MovedDirectory()
        let cluster = try ClusterFixture()
        #expect(throws: BrokenOff.self) { try directory.move(to: cluster) { throw BrokenOff() } }
        #expect(throws: DirectoryMove.Failure.otherKey) {
            try directory.move(to: cluster, key: Array(repeating: 8, count: 32))
        }
        let gateway = try EngineFixture.file(in: directory.path)
        #expect(throws: StoreError.alreadyInUse) { try directory.move(to: cluster) }
        try await gateway.stop()
        #expect(throws: PostgresError.self) { try directory.move(to: cluster) }
    }

    // MARK: Secrets

    @Test func `the fleet signs with the key of the directory`() async throws {
        let directory = try await MovedDirectory()
        let ring = try KeyRingStore(directory: directory.path + "/keys").openExisting(
            timing: MovedDirectory.timing)
        let cluster = try ClusterFixture()
        try directory.move(to: cluster)
        let keys = try await EngineFixture.keys(of: 1, of: cluster)
        #expect(keys.notifications?.signingKey.kid == ring.signingKey.kid)
        #expect(keys.notifications?.others.isEmpty == true)
        let tokens = try KeyRingStore(directory: directory.path + "/issuer").openExisting(
            timing: .tokens)
        #expect(keys.tokens?.signingKey.kid == tokens.signingKey.kid)
    }

    @Test func `keys keep their states and times`() throws {
        let now: Int64 = 1_000_000
        let keys = try (0..<5).map { _ in try SigningKey() }
        let ring = KeyRing(
            signing: keys[2], since: now - 500,
            others: [
                KeyRing.Entry(key: keys[0], state: .retiring(until: now + 10)),
                KeyRing.Entry(key: keys[1], state: .retiring(until: now + 20)),
                KeyRing.Entry(key: keys[3], state: .published(from: now - 5)),
                KeyRing.Entry(key: keys[4], state: .published(from: now + 100)),
            ], timing: MovedDirectory.timing)
        let key = FleetKey(SecretBytes(copying: EngineFixture.fleetKey))
        let translation = try StoreTranslation(
            secret: Data(repeating: 1, count: 32), key: key, head: 5, catalogs: [])
        let rows = try translation.secrets(ring, now: now)
        var secrets = SharedSecrets(kinds: [.signing, .keyHash], timing: SecretTiming())
        secrets.receive(rows, serverTime: now, sentAt: 0, receivedAt: 0) {
            row throws(SecretError) in
            try key.unwrap(row.wrapped, kind: row.kind, name: row.name)
        }
        func valid(_ seconds: Int64) -> Set<String> {
            Set(secrets.valid(.signing, at: seconds * 1_000).map(\.row.name))
        }
        let kids = keys.map(\.kid)
        #expect(
            secrets.current(.keyHash, at: 0)?.secret.withBytes { Array($0) }
                == Array(repeating: 1, count: 32))
        // The successor was due: it signs, and what the former signed until now stays valid.
        #expect(secrets.current(.signing, at: 0)?.row.name == kids[3])
        #expect(valid(0) == Set(kids))
        #expect(valid(10) == Set(kids[1...]))
        #expect(valid(20) == Set(kids[2...]))
        let grace = MovedDirectory.timing.signatureLifetime + MovedDirectory.timing.publishLead
        #expect(valid(grace - 1) == Set(kids[2...]))
        #expect(valid(grace) == Set(kids[3...]))
        #expect(valid(grace + 100) == [kids[4]])
        secrets.receive(rows, serverTime: now + 100, sentAt: 0, receivedAt: 0) {
            row throws(SecretError) in
            try key.unwrap(row.wrapped, kind: row.kind, name: row.name)
        }
        #expect(secrets.current(.signing, at: 0)?.row.name == kids[4])
    }

    // MARK: The command

    @Test func `the command moves, says so, and no gateway serves from the directory`()
        async throws
    {
        let directory = try await MovedDirectory()
        let cluster = try ClusterFixture()
        let key = directory.path + "/cluster.key"
        try Data(EngineFixture.fleetKey).write(to: URL(fileURLWithPath: key))
        func run(_ arguments: [String]) throws -> TestProgram {
            let program = try TestProgram(try TestProgram.path(of: "timeline-gateway"), arguments)
            _ = program.waitForExit(seconds: Patience.seconds)
            return program
        }
        let move = [
            "move", "--from", directory.path, "--to", cluster.url(), "--key", key, "--json",
        ]
        #expect(try run(move).standardErrorTail.contains("key: the fleet key"))
        chmod(key, 0o600)
        let missing = try run(["move", "--from", "/none", "--to", cluster.url(), "--key", key])
        #expect(missing.standardErrorTail.contains("from: the directory /none"))

        let moved = try run(move)
        let object = try #require(try moved.json(line: 0), "\(moved.standardErrorTail)")
        #expect(object["head"] == 10 && object["registrations"] == 2 && object["isNew"] == true)
        #expect(moved.standardErrorTail.contains("log: 10 of 10"))
        let log = try cluster.administration().rows("SELECT log_id::text FROM tg.log_identity")
        #expect(try object["log"]?.stringValue == log.first?.text(0))
        #expect(try run(move).json(line: 0)?["isNew"] == false)

        let serve = try TestProgram(
            try TestProgram.path(of: "timeline-gateway"), ["serve", "--data", directory.path])
        #expect(serve.waitForExit(seconds: Patience.seconds) == .status(78))
        #expect(serve.standardErrorTail.contains("was moved to a cluster"))
    }
}
