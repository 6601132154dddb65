import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Glibc
import Testing

@testable import GatewayCluster
@testable import GatewayStorage

/// What the database refuses, and what a node does not believe.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls) struct AppendTests {
    @Test func `an append is not confirmed where its own look finds no quorum`() async throws {
        let cluster = try TestCluster()
        // The setting is empty for the query behind an append, and for no other one.
        try cluster.execute(
            """
            CREATE SCHEMA other;
            CREATE FUNCTION other.current_setting(text) RETURNS text LANGUAGE sql AS $$
              SELECT CASE WHEN current_query() LIKE '%pg_notify%' THEN '' ELSE 'standby' END $$;
            ALTER DATABASE \(cluster.database) SET search_path = other, pg_catalog
            """)
        let leader = try await TestNode("a", of: cluster, waitsForStandby: true)
        try await leader.untilLeading()
        await #expect(throws: StoreError.self) { try await leader.append("one") }
        try await leader.stop()
    }

    @Test func `an append that meets a take waits for it, and is refused`() async throws {
        let cluster = try TestCluster()
        let holder = try cluster.server.administration(database: cluster.database)
        try holder.execute("BEGIN")
        try holder.execute("UPDATE timeline.leader SET generation = generation + 1")
        let append = Task.detached {
            try cluster.execute(
                """
                DO $$ DECLARE newest bigint; newest_id uuid; BEGIN
                  SELECT number, id INTO newest, newest_id FROM timeline.batch
                    ORDER BY number DESC LIMIT 1;
                  CALL timeline.append(0, newest, newest_id, gen_random_uuid(), 0, '', true,
                    '{}', '{}', '{}', '{}', '{}', 0);
                END $$
                """)
        }
        try await eventually("the append waits") {
            try cluster.rows(
                """
                SELECT 1 FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock'
                """
            ).count == 1
        }
        try holder.execute("COMMIT")
        await #expect(throws: PostgresError.fenced) { try await append.value }
        #expect(try cluster.rows("SELECT 1 FROM timeline.batch").count == 1)
    }

    @Test func `an append whose items fail leaves no batch`() async throws {
        let (cluster, leader) = try await TestCluster.led()
        try await leader.append("one")
        try cluster.execute(
            """
            CREATE FUNCTION timeline.fail() RETURNS trigger LANGUAGE plpgsql AS $$
              BEGIN RAISE 'no room'; END $$;
            CREATE TRIGGER fail BEFORE INSERT ON timeline.item
              FOR EACH ROW EXECUTE FUNCTION timeline.fail()
            """)
        await #expect(throws: StoreError.self) {
            try await leader.store.write(cost: 1) { try $0.setMeta("key", Data()) }
        }
        #expect(try cluster.rows("SELECT 1 FROM timeline.batch").count == 2)
        try await leader.stop()
    }

    @Test func `leases go by a clock that nobody sets and that goes on during a sleep`() {
        func boot() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_BOOTTIME, &time)
            return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
        }
        let before = boot()
        let now = ClusterConnection.now
        #expect(before <= now && now <= boot())
    }
}

@Suite struct SealTests {
    private static func key(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: 32) }

    @Test func opensWhatItSealedForTheSameRowOnly() throws {
        let seal = try Seal(Self.key(1))
        for bytes in [[], [0], Array("payload".utf8), Array(repeating: 7, count: 100_000)] {
            var sealed = try seal.seal(bytes, for: "item 1")
            #expect(try seal.open(sealed, for: "item 1") == bytes)
            #expect(throws: Seal.Fault.notAuthentic(row: "item 2")) {
                try seal.open(sealed, for: "item 2")
            }
            sealed[sealed.count - 1] ^= 1
            #expect(throws: Seal.Fault.notAuthentic(row: "item 1")) {
                try seal.open(sealed, for: "item 1")
            }
        }
        for count in 0..<33 {
            #expect(throws: Seal.Fault.notAuthentic(row: "x")) {
                try seal.open(Array(repeating: 1, count: count), for: "x")
            }
        }
    }

    @Test func anOlderKeyStillOpens() throws {
        let old = try Seal(Self.key(1))
        let both = try Seal(Self.key(2) + Self.key(1))
        let sealed = try old.seal([1, 2, 3], for: "row")
        #expect(try both.open(sealed, for: "row") == [1, 2, 3])
        #expect(throws: Seal.Fault.notAuthentic(row: "row")) {
            try old.open(try both.seal([1], for: "row"), for: "row")
        }
    }

    @Test func readsAFileOfItsOwnerWithWholeKeys() throws {
        let path = try GatewayProcess.temporaryDirectory() + "/key"
        func write(_ bytes: [UInt8], mode: Int) throws {
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
        try write(Self.key(1) + Self.key(2), mode: 0o600)
        _ = try Seal(contentsOf: path)
        try write(Self.key(1), mode: 0o640)
        #expect(throws: Seal.Fault.self) { try Seal(contentsOf: path) }
        try write(Self.key(1) + [0], mode: 0o600)
        #expect(throws: Seal.Fault.self) { try Seal(contentsOf: path) }
        #expect(throws: Seal.Fault.self) { try Seal(contentsOf: path + "-missing") }
    }
}
