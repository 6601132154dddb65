import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct QuorumTests {
    /// Kills a loaded primary, promotes its standby, and goes on; returns what is wrong with the log
    /// then.
    ///
    /// - Parameter isCutOff: Whether the last that the primary writes does not leave it.
    private func failOver(_ cluster: ClusterFixture, isCutOff: Bool = false) throws -> [String] {
        let standby = try #require(cluster.standby)
        let posts = AcceptedPosts()
        let fixtures = try [1, 2].map {
            try WriterFixture(
                try cluster.primary.address(user: "node\($0)", and: standby), .quorum,
                deadline: 3_000)
        }
        for (index, fixture) in fixtures.enumerated() {
            posts.load(fixture, node: UInt64(index + 1))
        }
        try posts.wait(forMore: 200)
        if isCutOff {
            let sender = try cluster.primary.administration().rows(
                "SELECT pid FROM pg_stat_replication")
            kill(try Int32(#require(sender.first).integer(0)), SIGSTOP)
            try posts.wait(forMore: 50)
        }
        try cluster.primary.crash()
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
        #expect(try failOver(cluster, isCutOff: true).contains { $0.contains("lost") })
    }

    @Test func withoutAStandbyNothingIsAcceptedAndWithOneAgainEverything() throws {
        let cluster = try ClusterFixture(hasQuorum: true)
        let standby = try #require(cluster.standby)
        let fixture = try WriterFixture(try cluster.primary.address(user: "node1"), .quorum)
        let hasty = try WriterFixture(
            try cluster.primary.address(user: "node2"), .quorum, deadline: 1_000)
        try fixture.appendUntilAccepted(.init(1, key: 1))
        try hasty.appendUntilAccepted(.init(10, key: 10))
        standby.pause()
        #expect(try hasty.append(.init(2)).isOpen)
        standby.resume()
        try fixture.appendUntilAccepted(.init(3, key: 3))

        // A wait that is cancelled is reported as success, with a warning.
        try hasty.appendUntilAccepted(.init(11, key: 11))
        standby.pause()
        try cancelWait(cluster, of: hasty, number: 4)
        standby.resume()
        try fixture.appendUntilAccepted(.init(5, key: 5))

        // A setting that is emptied lets what waits go on, without a warning.
        try hasty.appendUntilAccepted(.init(12, key: 12))
        standby.pause()
        let emptying = Thread {
            try? waitForWait(cluster)
            try? cluster.primary.set("synchronous_standby_names", "")
        }
        emptying.start()
        try blockUntil("the node notices") {
            let outcome = try hasty.append(.init(6, key: 6))
            #expect(outcome.isOpen)
            return if case .unready(.notDurable)? = hasty.status { true } else { false }
        }
        standby.resume()
        try cluster.primary.set("synchronous_standby_names", "ANY 1 (standby)")
        try fixture.appendUntilAccepted(.init(7, key: 7))
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
        #expect(try fixture.append(.init(number)).isOpen)
    }

    @Test func aSilentPrimaryIsGivenUpAndAnAppendFoundLater() throws {
        let cluster = try ClusterFixture(hasServer: true)
        let fixture = try WriterFixture(
            try cluster.primary.address(user: "node1"), deadline: 1_000)
        try fixture.waitUntilReady()
        cluster.primary.pause()
        #expect(try fixture.append(.init(1, key: 1)).isOpen)
        cluster.primary.resume()
        try fixture.appendUntilAccepted(.init(1, key: 1))
        #expect(try AcceptedPosts().faults(in: try cluster.administration()) == [])
    }
}

/// Waits until an append waits for the standby.
private func waitForWait(_ cluster: ClusterFixture) throws {
    let connection = try cluster.primary.administration()
    try blockUntil("an append waits for the standby") {
        try !connection.rows(
            """
            SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'CALL%'
            """
        ).isEmpty
    }
}
