import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct PostgresSecretsTests {
    private let cluster: ClusterFixture
    private let key: FleetKey

    init() throws {
        cluster = try ClusterFixture()
        key = try Self.fleetKey(1)
    }

    private static func fleetKey(_ byte: UInt8) throws -> FleetKey {
        FleetKey(
            try #require(
                SecretBytes(count: 32) {
                    $0.copyBytes(from: [UInt8](repeating: byte, count: 32))
                    return true
                }))
    }

    /// A node that reads the secrets, and what it last read.
    private final class Node: Sendable {
        private let loop: PostgresLoop
        let secrets: PostgresSecrets
        private let readings = TestHTTPMonitor<[Result<SharedSecrets, PostgresError>]>([])

        init(_ cluster: ClusterFixture, _ login: String, _ key: FleetKey) throws {
            loop = try PostgresLoop(name: "secrets")
            let readings = readings
            secrets = PostgresSecrets(
                try cluster.address(user: login), key, on: loop,
                observe: { reading in readings.update { $0.append(reading) } })
        }

        deinit { loop.end() }

        /// The secrets of the first reading.
        func read() throws -> SharedSecrets {
            guard let reading = readings.wait(seconds: Patience.seconds, { $0.first }) else {
                throw TestFailure("the table was not read")
            }
            return try reading.get()
        }
    }

    private func integers(_ sql: String) throws -> [Int64] {
        try cluster.administration().rows(sql).map { try $0.integer(0) }
    }

    @Test func twoNodesAtOnceMakeOneSecretOfEachKindAndBothHaveIt() throws {
        let nodes = try ["node1", "node2"].map { try Node(cluster, $0, key) }
        let read = try nodes.map { try $0.read() }
        #expect(
            try integers("SELECT count(*) FROM tg.secret GROUP BY kind")
                == SecretKind.allCases.map { _ in 1 })
        for kind in SecretKind.allCases {
            let entries = read.map { $0.current(kind, at: PostgresLoop.now) }
            #expect(entries[0]?.row == entries[1]?.row)
            let secrets = entries.map { $0?.secret.withBytes { Array($0) } }
            #expect(secrets[0] != nil)
            #expect(secrets[0] == secrets[1])
        }
        #expect(read.allSatisfy { $0.unreadiness(at: PostgresLoop.now) == nil })
    }

    @Test func ofTwoRotationsFromOneReadingTheServerTakesOne() throws {
        _ = try Node(cluster, "node1", key).read()
        let newest = try #require(
            try cluster.administration().rows("SELECT name FROM tg.secret WHERE kind = 'signing'")
                .first?.text(0))
        let addition = SecretRotation.Addition(
            kind: .signing, newest: newest, lead: 360, kept: 1, grace: 900)
        let sessions = try ["node1", "node2"].map { login in
            SessionDriver(try cluster.address(user: login), preparing: SecretRequest.statements)
        }
        for session in sessions { try session.open() }
        // Both in the hands of the server before either is answered.
        for (number, session) in sessions.enumerated() {
            session.session.send([
                SecretRequest.add(addition, name: "new \(number)", wrapped: [1]).query
            ])
        }
        var added: [Bool] = []
        for session in sessions {
            let rows = try session.wait { events -> [PostgresRow]? in
                events.lazy.compactMap { event in
                    if case .answered(let answer) = event { try? answer.get() } else { nil }
                }.first
            }
            added.append(try rows.first?.boolean(0) ?? false)
        }
        #expect(added.filter { $0 }.count == 1)
        #expect(
            try integers(
                """
                SELECT round(extract(epoch FROM not_before - clock_timestamp()) / 10)::bigint
                FROM tg.secret WHERE kind = 'signing' ORDER BY not_before
                """
            ).last == 36)
        // The former one ends by itself: when the new one begins, and `exp` and a cache time later.
        #expect(
            try integers(
                """
                SELECT extract(epoch FROM former.not_after - next.not_before)::bigint
                FROM tg.secret former, tg.secret next
                WHERE former.name = '\(newest)' AND next.name LIKE 'new %'
                """) == [900])
    }

    @Test func theServerRefusesWhatNodesWouldNotHaveRead() throws {
        _ = try Node(cluster, "node1", key).read()
        let node = try cluster.connection(as: "node1")
        func refusal(_ kind: String, lead: Int) throws -> PostgresError? {
            let name = try #require(
                try cluster.administration().rows(
                    "SELECT name FROM tg.secret WHERE kind = '\(kind)'"
                ).first?.text(0))
            return #expect(throws: PostgresError.self) {
                try node.execute(
                    "SELECT tg.add_secret('\(kind)', 'new', '\(name)', \(lead), 2, 0, '\\x00')")
            }
        }
        guard case .other("22023", let message) = try refusal("hash-keys", lead: 1_000),
            message.contains("never rotated")
        else { throw TestFailure("the key of the hashes was rotated") }
        guard case .other("22023", _) = try refusal("ticket", lead: 59) else {
            throw TestFailure("a secret was used before all nodes had it")
        }
        try cluster.execute("UPDATE tg.secret SET not_before = not_before - interval '1 year'")
        let again = try Node(cluster, "node2", key)
        _ = try again.read()
        let counts = try cluster.administration().rows(
            "SELECT kind, count(*) FROM tg.secret GROUP BY kind ORDER BY kind"
        ).map { (try $0.text(0), try $0.integer(1)) }
        for (kind, count) in counts {
            #expect(count == (kind.hasPrefix("hash-") ? 1 : 2), "\(kind)")
        }
    }

    @Test func whatHasEndedIsRemoved() throws {
        _ = try Node(cluster, "node1", key).read()
        try cluster.execute(
            """
            INSERT INTO tg.secret SELECT kind, 'old', not_before - interval '1 h',
              clock_timestamp() - interval '2 s', wrapped FROM tg.secret WHERE kind = 'ticket'
            """)
        #expect(try integers("SELECT 1::bigint FROM tg.secret WHERE name = 'old'").count == 1)
        _ = try Node(cluster, "node2", key).read()
        #expect(try integers("SELECT 1::bigint FROM tg.secret WHERE name = 'old'").isEmpty)
    }

    @Test func aNodeWithAnotherFleetKeyIsNotReadyAndMakesNothing() throws {
        _ = try Node(cluster, "node1", key).read()
        let stranger = try Node(cluster, "node2", try Self.fleetKey(2))
        let read = try stranger.read()
        guard case .unreadable(.notAuthentic) = read.unreadiness(at: PostgresLoop.now) else {
            throw TestFailure("\(String(describing: read.unreadiness(at: PostgresLoop.now)))")
        }
        for kind in SecretKind.allCases {
            #expect(read.current(kind, at: PostgresLoop.now) == nil)
        }
        #expect(
            try integers("SELECT count(*) FROM tg.secret") == [Int64(SecretKind.allCases.count)])
    }

    @Test func rowsThatWereExchangedAreNoticed() throws {
        _ = try Node(cluster, "node1", key).read()
        try cluster.execute(
            """
            UPDATE tg.secret s SET wrapped = o.wrapped FROM tg.secret o
            WHERE s.kind IN ('signing', 'issuer') AND o.kind IN ('signing', 'issuer')
              AND s.kind <> o.kind
            """)
        let read = try Node(cluster, "node2", key).read()
        guard case .unreadable(.notAuthentic(let kind, _)) = read.unreadiness(at: PostgresLoop.now)
        else { throw TestFailure("exchanged rows were read") }
        #expect(["signing", "issuer"].contains(kind))
        #expect(read.current(.ticket, at: PostgresLoop.now) != nil)
    }

    /// Looks for keys in everything that the server writes: tables and their indexes, its log of
    /// writes, and what it sends for a dump.
    @Test func neitherADumpNorTheServersFilesContainAKey() throws {
        let read = try Node(cluster, "node1", key).read()
        try cluster.execute("CHECKPOINT")
        var needles = [[UInt8](repeating: 1, count: 32)]
        for kind in SecretKind.allCases {
            let bytes = try #require(
                read.current(kind, at: PostgresLoop.now)?.secret.withBytes { Array($0) })
            // Of a PEM text the line with the key.
            needles.append(
                bytes.count > 100 ? Array(bytes.dropFirst(50).prefix(40)) : bytes)
        }
        let dump = try cluster.administration().rows(
            "SELECT s::text FROM tg.secret s")
        #expect(dump.count == SecretKind.allCases.count)
        for row in dump {
            let text = try row.text(0)
            for needle in needles {
                let digits = needle.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
                #expect(!text.contains(digits.prefix(24)))
            }
        }
        var files = 0
        var folders: Set<Substring> = []
        let wrapped = try SecretKind.allCases.map {
            Data(try #require(read.current($0, at: PostgresLoop.now)?.row.wrapped))
        }
        let root = cluster.primary.directory + "/data"
        for path in FileManager.default.enumerator(atPath: root)?.compactMap({ $0 as? String })
            ?? []
        where path.hasPrefix("base/") || path.hasPrefix("pg_wal/") {
            guard let content = FileManager.default.contents(atPath: root + "/" + path) else {
                continue
            }
            files += 1
            if wrapped.contains(where: { content.range(of: $0) != nil }) {
                folders.insert(path.prefix { $0 != "/" })
            }
            for needle in needles.dropFirst() {
                #expect(content.range(of: Data(needle)) == nil, "\(path)")
            }
        }
        #expect(files > 100)
        // The search finds what is there: in the table and in the log of writes. Of one secret that
        // would not be sure, as the server divides what lies across a border of two pages.
        #expect(folders == ["base", "pg_wal"])
    }
}
