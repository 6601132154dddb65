import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct QuorumTests {
    /// Kills a loaded primary, promotes its standby, and goes on; returns what is wrong with the log
    /// then.
    private func failOver(_ cluster: ClusterFixture) throws -> [String] {
        let standby = try #require(cluster.standby)
        let posts = AcceptedPosts()
        let fixtures = try [1, 2].map {
            try WriterFixture(
                try cluster.primary.address(user: "node\($0)", and: standby), .quorum)
        }
        for (index, fixture) in fixtures.enumerated() {
            posts.load(fixture, node: UInt64(index + 1))
        }
        try posts.wait(forMore: 200)
        cluster.primary.kill()
        try standby.promote()
        try standby.set("synchronous_standby_names", "")
        // The standby that is now the primary has none itself.
        let after = try WriterFixture(try standby.address(user: "node1"))
        try after.waitUntilReady()
        guard case .accepted = try after.append(.init(1, of: 99)) else {
            throw TestFailure("the promoted standby takes no writes")
        }
        posts.stop()
        return try posts.faults(in: try standby.administration())
    }

    @Test func nothingAcceptedIsLostWithThePrimary() throws {
        #expect(try failOver(try ClusterFixture(hasQuorum: true)) == [])
    }

    /// The recorder notices an append that does not wait.
    @Test func anAppendWithoutSynchronousCommitLosesWhatWasAccepted() throws {
        let cluster = try ClusterFixture(hasQuorum: true)
        let connection = try cluster.primary.administration()
        let definition = try #require(
            try connection.rows("SELECT pg_get_functiondef('tg.append'::regproc)").first?.text(0))
        let broken = definition.replacingOccurrences(
            of: "'synchronous_commit', 'on'", with: "'synchronous_commit', 'off'")
        #expect(broken != definition)
        try connection.execute(broken)
        try cluster.primary.set("wal_writer_delay", "10s")
        #expect(try failOver(cluster).contains { $0.contains("lost") })
    }

    @Test func withoutAStandbyNothingIsAcceptedAndWithOneAgainEverything() throws {
        let cluster = try ClusterFixture(hasQuorum: true)
        let standby = try #require(cluster.standby)
        let fixture = try WriterFixture(
            try cluster.primary.address(user: "node1"), .quorum, deadline: 1_000)
        guard case .accepted = try fixture.append(.init(1)) else { throw TestFailure("refused") }
        standby.pause()
        #expect(try fixture.append(.init(2)) == .unknown)
        standby.resume()
        try fixture.waitUntilReady()
        guard case .accepted = try fixture.append(.init(3)) else { throw TestFailure("refused") }

        // A wait that is cancelled is reported as success, with a warning.
        standby.pause()
        try cancelWait(cluster, of: fixture, number: 4)
        standby.resume()
        try fixture.waitUntilReady()
        guard case .accepted = try fixture.append(.init(5)) else { throw TestFailure("refused") }

        // A setting that is emptied lets what waits go on, without a warning.
        standby.pause()
        let emptying = Thread {
            try? waitForWait(cluster)
            try? cluster.primary.set("synchronous_standby_names", "")
        }
        emptying.start()
        let outcome = try fixture.append(.init(6))
        #expect(outcome == .unknown || outcome == .refused(.unavailable))
        try fixture.wait { if case .unready(.notDurable) = $0 { true } else { false } }
        standby.resume()
        try cluster.primary.set("synchronous_standby_names", "ANY 1 (standby)")
        try fixture.waitUntilReady()
        guard case .accepted = try fixture.append(.init(7)) else { throw TestFailure("refused") }
        #expect(try AcceptedPosts().faults(in: try cluster.administration()) == [])
    }

    /// Cancels the wait of an append for the standby, which must not be accepted.
    private func cancelWait(
        _ cluster: ClusterFixture, of fixture: WriterFixture, number: UInt64
    ) throws {
        let cancelling = Thread {
            try? waitForWait(cluster)
            try? cluster.primary.execute(
                """
                SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                WHERE wait_event = 'SyncRep' AND query LIKE 'CALL%'
                """)
        }
        cancelling.start()
        #expect(try fixture.append(.init(number)) == .unknown)
    }

    @Test func aSilentPrimaryIsGivenUpAndAnAppendFoundLater() throws {
        let cluster = try ClusterFixture(hasServer: true)
        let fixture = try WriterFixture(
            try cluster.primary.address(user: "node1"), deadline: 1_000)
        try fixture.waitUntilReady()
        cluster.primary.pause()
        let outcome = try fixture.append(.init(1, key: 1))
        #expect(outcome == .unknown || outcome == .refused(.unavailable))
        cluster.primary.resume()
        try fixture.waitUntilReady()
        guard case .accepted = try fixture.append(.init(1, key: 1)) else {
            throw TestFailure("refused")
        }
        #expect(try AcceptedPosts().faults(in: try cluster.administration()) == [])
    }
}

/// Waits until an append waits for the standby.
private func waitForWait(_ cluster: ClusterFixture) throws {
    let connection = try cluster.primary.administration()
    let deadline = ContinuousClock.now + .seconds(10)
    while ContinuousClock.now < deadline {
        let waiting = try connection.rows(
            """
            SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'CALL%'
            """)
        if !waiting.isEmpty { return }
        usleep(10_000)
    }
    throw TestFailure("no append waits for the standby")
}
