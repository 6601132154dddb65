import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayPostgres

/// Several nodes that write one client, or one catalog.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct RegistrationRaceTests {
    @Test func twoWritersOfOneClientLoseNoUpdate() throws {
        let cluster = try ClusterFixture()
        let counters = try Counters(cluster)
        try counters.wait(forMore: 60)
        let end = try counters.stop()
        #expect(end.unknown == 0)
        #expect(end.conflicts > 0)
        #expect(try counters.value() == end.written)
        #expect(try Self.faults(cluster) == [])
    }

    /// Shows that the count finds a server that writes whatever the revision is.
    @Test func aServerThatIgnoresTheRevisionLosesUpdates() throws {
        let cluster = try ClusterFixture()
        try Self.breakFunction("write_registrations", of: cluster) {
            // The pause makes both decide before either writes.
            $0.replacing("AND (r.revision = u.base OR", with: "AND (true OR")
                .replacing("BEGIN\n", with: "BEGIN PERFORM pg_sleep(0.02);\n")
        }
        let counters = try Counters(cluster)
        try counters.wait(forMore: 60)
        let end = try counters.stop()
        #expect(try counters.value() < end.written)
    }

    @Test func rowAndRecordStayTogetherWhenTheServerIsKilled() throws {
        let cluster = try ClusterFixture(hasServer: true)
        let counters = try Counters(cluster, deadline: 1_000)
        for _ in 0..<3 {
            try counters.wait(forMore: 15)
            try cluster.primary.crash()
            try cluster.primary.start()
        }
        try counters.wait(forMore: 15)
        let end = try counters.stop()
        #expect((end.written...end.written + end.unknown).contains(try counters.value()))
        #expect(try Self.faults(cluster) == [])
    }

    /// Shows that the comparison finds rows and records that are not one transaction.
    @Test func aServerThatWritesRowsApartIsFoundOut() throws {
        let cluster = try ClusterFixture(hasServer: true)
        let counters = try Counters(cluster, deadline: 1_000)
        try counters.wait(forMore: 1)
        try cluster.execute("GRANT EXECUTE ON FUNCTION tg.write_registrations TO tg_node")
        // A node stops between the two, and never reaches the record.
        try Self.breakFunction("commit_append", of: cluster) {
            $0.replacing(
                "BEGIN\n",
                with: """
                    BEGIN
                      IF cardinality(registrations.clients) > 0 THEN
                        PERFORM tg.write_registrations(probed, registrations, claims);
                        COMMIT;
                        PERFORM pg_sleep(3600);
                      END IF;

                    """)
        }
        let connection = try cluster.administration()
        try blockUntil("a node is between its row and its record") {
            try !connection.rows(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            ).isEmpty
        }
        try cluster.primary.crash()
        // The next write would hide it.
        _ = try counters.stop()
        try cluster.primary.start()
        #expect(try !Self.faults(cluster).isEmpty)
    }

    /// Registrations of few clients with shared addresses, at random from two nodes.
    @Test func rowsAddressesAndRecordsAgreeAfterManyWritesAtOnce() throws {
        let cluster = try ClusterFixture()
        let nodes = try [1, 2].map { try WriterFixture(try cluster.address(user: "node\($0)")) }
        let tally = TestHTTPMonitor<(kinds: [String: Int], ended: Int)>(([:], 0))
        for (index, node) in nodes.enumerated() {
            for thread in 0..<3 {
                onThread {
                    var random = SplitMix64(seed: UInt64(index * 10 + thread))
                    for _ in 0..<60 {
                        let outcome = try? Self.writeSomething(at: node, using: &random)
                        tally.update { $0.kinds[outcome ?? "none", default: 0] += 1 }
                    }
                    tally.update { $0.ended += 1 }
                }
            }
        }
        guard tally.wait(seconds: Patience.seconds, { $0.ended == 6 ? true : nil }) != nil else {
            throw TestFailure("the writers do not end")
        }
        let kinds = tally.update { $0.kinds }
        // Neither a lock nor a deadlock costs a write its outcome.
        #expect(Set(kinds.keys) == ["written", "conflict"])
        #expect(kinds["written"] ?? 0 > 100)
        #expect(try Self.faults(cluster) == [])
        // An address may be in rows of clients that lost it, but its owner has it. By chance no
        // address has an owner at the end, so one is claimed.
        _ = try nodes[0].write(
            .registration(
                RegistrationWrite(
                    key: RegistrationKey(part: 0, app: "app", client: "owner"), base: 0,
                    content: RegistrationContent(
                        digest: 1, attributes: [], tokens: [9], payload: [1]))))
        let owned = try cluster.administration().rows(
            """
            SELECT coalesce(p.token = ANY (r.tokens), false) FROM tg.push_address p
            LEFT JOIN tg.registration r
              ON r.part = p.part AND r.app = p.app AND r.client = p.client
            """)
        #expect(try !owned.isEmpty && owned.allSatisfy { try $0.boolean(0) })
    }

    private static func writeSomething(
        at node: WriterFixture, using random: inout SplitMix64
    ) throws -> String {
        let client = random.below(8)
        let key = RegistrationKey(part: Int16(client % 3), app: "app", client: "c\(client)")
        let row = try node.row(key)
        let content = RegistrationContent(
            digest: 1, attributes: [UInt128(client)],
            tokens: (0..<UInt128(4)).filter { _ in random.happens(40) }, payload: [1])
        let isRemoval = row != nil && random.happens(20)
        let outcome = try node.write(
            .registration(
                RegistrationWrite(
                    key: key, base: row?.revision ?? 0, content: isRemoval ? nil : content)))
        switch outcome {
        case .written: return "written"
        case .conflict: return "conflict"
        default: return "\(outcome)"
        }
    }

    /// Every catalog names the place of the one that it was decided from.
    @Test(arguments: [false, true])
    func twoWritersOfOneCatalogReplaceWhatTheyKnow(isBroken: Bool) throws {
        let cluster = try ClusterFixture()
        if isBroken {
            try Self.breakFunction("append", of: cluster) {
                $0.replacing("t.seq > probed AND t.app = ANY (apps)", with: "false")
                    .replacing("BEGIN\n", with: "BEGIN PERFORM pg_sleep(0.02);\n")
            }
        }
        let nodes = try [1, 2].map { try WriterFixture(try cluster.address(user: "node\($0)")) }
        let newest = TestHTTPMonitor<(place: Int64, count: Int, ended: Int)>((0, 0, 0))
        for node in nodes {
            for _ in 0..<2 {
                onThread {
                    while newest.update({ $0.count }) < 60 {
                        let place = newest.update { $0.place }
                        let outcome = try? node.write(
                            .catalog(payload: Array("\(place)".utf8), replacing: place))
                        guard case .written(let sequence, _) = outcome else { continue }
                        newest.update {
                            $0.place = max($0.place, sequence)
                            $0.count += 1
                        }
                    }
                    newest.update { $0.ended += 1 }
                }
            }
        }
        guard newest.wait(seconds: Patience.seconds, { $0.ended == 4 ? true : nil }) != nil else {
            throw TestFailure("the writers do not end")
        }
        var before: Int64 = 0
        var wrong = 0
        let rows = try cluster.administration().rows(
            "SELECT seq, payload FROM tg.catalog ORDER BY seq")
        for row in rows {
            if String(decoding: try row.bytes(1), as: UTF8.self) != "\(before)" { wrong += 1 }
            before = try row.integer(0)
        }
        #expect(isBroken ? wrong > 0 : wrong == 0)
    }

    private static func breakFunction(
        _ name: String, of cluster: ClusterFixture, _ change: (String) -> String
    ) throws {
        let connection = try cluster.administration()
        let definition = try #require(
            try connection.rows("SELECT pg_get_functiondef('tg.\(name)'::regproc)").first?.text(0))
        #expect(change(definition) != definition)
        try connection.execute(change(definition))
    }

    /// Compares every row with its newest record; returns what is wrong.
    private static func faults(_ cluster: ClusterFixture) throws -> [String] {
        let connection = try cluster.administration()
        var records: [String: Int64] = [:]
        var removals: Set<Int64> = []
        var faults: [String] = []
        for batch in try connection.rows("SELECT body FROM tg.log ORDER BY last") {
            for record in try LogRecord.records(in: try batch.bytes(0)) {
                let client: String
                let revision: Int64
                switch record.content {
                case .registration(let state): (client, revision) = (state.client, state.revision)
                case .registrationRemoved(_, let removed, let last):
                    (client, revision) = (removed, last)
                    removals.insert(revision)
                default: continue
                }
                if revision <= records[client] ?? 0 { faults.append("a revision twice") }
                records[client] = revision
            }
        }
        for row in try connection.rows("SELECT client, revision FROM tg.registration") {
            let client = try row.text(0)
            if try row.integer(1) != records.removeValue(forKey: client) {
                faults.append("the row of \(client) is another than its record")
            }
        }
        return faults
            + records.filter { !removals.contains($0.value) }.keys.map {
                "the row of \($0) is missing"
            }
    }
}

/// Two nodes that count up in one client's payload, each from what it has read.
private final class Counters: Sendable {
    private struct Tally {
        var written = 0
        var unknown = 0
        var conflicts = 0
        var ended = 0
        var isStopped = false
    }

    private static let key = RegistrationKey(part: 3, app: "app", client: "counter")
    private static let width = 2
    private let cluster: ClusterFixture
    private let nodes: [WriterFixture]
    private let tally = TestHTTPMonitor<Tally>(Tally())

    /// Begins to count.
    ///
    /// - Parameter deadline: The longest time that a write may take, milliseconds.
    init(
        _ cluster: ClusterFixture, deadline: Int64 = Int64(Patience.milliseconds)
    ) throws {
        self.cluster = cluster
        let first = try WriterFixture(try cluster.address(user: "node1")).write(
            .registration(RegistrationWrite(key: Self.key, base: 0, content: Self.content(0))))
        guard case .written = first else { throw TestFailure("\(first)") }
        nodes = try [1, 2].map {
            try WriterFixture(try cluster.address(user: "node\($0)"), deadline: deadline)
        }
        for node in nodes {
            for _ in 0..<Self.width {
                onThread { [self] in
                    while !tally.update({ $0.isStopped }) { count(at: node) }
                    tally.update { $0.ended += 1 }
                }
            }
        }
    }

    private func count(at node: WriterFixture) {
        guard let row = try? node.row(Self.key) else { return }
        let write = RegistrationWrite(
            key: Self.key, base: row.revision,
            content: Self.content(Self.number(row.content.payload) + 1))
        let outcome = try? node.write(.registration(write))
        tally.update {
            switch outcome {
            case .written: $0.written += 1
            case .unknown: $0.unknown += 1
            case .conflict: $0.conflicts += 1
            default: break
            }
        }
    }

    private static func content(_ number: Int) -> RegistrationContent {
        RegistrationContent(digest: 0, payload: Array("\(number)".utf8))
    }

    private static func number(_ payload: [UInt8]) -> Int {
        Int(String(decoding: payload, as: UTF8.self)) ?? -1
    }

    /// Waits until `count` more are written.
    func wait(forMore count: Int) throws {
        let target = tally.update { $0.written } + count
        guard tally.wait(seconds: Patience.seconds, { $0.written >= target ? true : nil }) != nil
        else {
            throw TestFailure("only \(tally.update { $0.written }) of \(target) are written")
        }
    }

    /// Ends the writers and returns their outcomes.
    func stop() throws -> (written: Int, unknown: Int, conflicts: Int) {
        tally.update { $0.isStopped = true }
        let end = tally.wait(seconds: Patience.seconds) {
            $0.ended == 2 * Self.width ? ($0.written, $0.unknown, $0.conflicts) : nil
        }
        guard let end else { throw TestFailure("the writers do not end") }
        return end
    }

    /// The number in the row.
    func value() throws -> Int {
        let row = try cluster.administration().rows(
            "SELECT payload FROM tg.registration WHERE client = 'counter'"
        ).first
        return Self.number(try row?.bytes(0) ?? [])
    }
}
