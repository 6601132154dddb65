import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct PostgresWriterTests {
    private static let shared = Result { try ClusterFixture() }

    @Test func changesAreAppendedOnceAndRepetitionsFound() throws {
        let fixture = try WriterFixture(try Self.shared.get().address(user: "node1"))
        let outcome = try fixture.append(.init(1, key: 1), .init(2, key: 2), .init(3, key: 1))
        guard case .accepted(let places) = outcome, case .appended(let first) = places.first else {
            throw TestFailure("\(outcome)")
        }
        #expect(places == [.appended(first), .appended(first + 1), .duplicate(first)])
        #expect(try fixture.append(.init(4, key: 2)) == .accepted([.duplicate(first + 1)]))
        #expect(try fixture.append(.init(5), .init(6, key: 2, digest: 2)) == .reused([1]))
        #expect(try fixture.append(.init(7)) == .accepted([.appended(first + 2)]))
        #expect(try fixture.append() == .accepted([]))
    }

    @Test func twoWritersAppendDenselyAndInOneOrder() throws {
        let server = try Self.shared.get()
        let posts = AcceptedPosts()
        let fixtures = try [1, 2].map { try WriterFixture(try server.address(user: "node\($0)")) }
        for (index, fixture) in fixtures.enumerated() {
            posts.load(fixture, node: UInt64(index + 10))
        }
        try posts.wait(forMore: 300)
        posts.stop()
        #expect(try posts.faults(in: try server.administration()) == [])
        let nodes = try server.administration().rows("SELECT DISTINCT node FROM tg.log").count
        #expect(nodes >= 2)
    }

    @Test func theLateStatementOfAnOldGenerationIsRefused() throws {
        let address = try Self.shared.get().address(user: "node2")
        let sessions = [
            SessionDriver(address, preparing: WriteRequest.statements),
            SessionDriver(address, preparing: WriteRequest.statements),
        ]
        func call(_ generation: Int64) -> PostgresQuery {
            WriteRequest.append(
                AppendCall(
                    generation: generation, batch: 5, link: 1, count: 1, probed: 0, keys: [],
                    digests: [], places: [], records: LogRecord(number: 1, of: 5).encoded)
            ).query
        }
        var generations: [Int64] = []
        for session in sessions {
            try session.open()
            let fence = try session.answers(WriteRequest.fence.query)[0].get()
            generations.append(try #require(try fence.first?.integer(0)))
        }
        let late = try sessions[0].answers(call(generations[0]))[0]
        #expect(throws: PostgresError.fenced) { try late.get() }
        #expect(try sessions[1].answers(call(generations[1]))[0].get().count == 1)
    }

    @Test func anotherHistoryIsReportedBeforeAnythingIsWritten() throws {
        let server = try Self.shared.get()
        let fixture = try WriterFixture(
            try server.address(user: "node1"), from: LogPosition(last: 0, chain: 9), deadline: 500)
        try fixture.wait { $0 == .unready(.tailLost) }
        #expect(try fixture.append(.init(1)) == .refused(.unavailable))
    }

    @Test func aNodeThatIsNotOneSaysSo() throws {
        let server = try Self.shared.get()
        try server.execute("CREATE ROLE stranger LOGIN IN ROLE tg_node")
        let stranger = try WriterFixture(try server.address(user: "stranger"))
        try stranger.wait { $0 == .unready(.misconfigured(.unknownNode)) }
        try server.execute("ALTER ROLE node2 SET default_transaction_isolation = 'serializable'")
        defer { try? server.execute("ALTER ROLE node2 RESET default_transaction_isolation") }
        let node = try WriterFixture(try server.address(user: "node2"), deadline: 500)
        try node.waitUntilReady()
        #expect(try node.append(.init(1)).isOpen)
        let unready = try WriterFixture(try server.address(user: "node1"), .quorum)
        try unready.wait { if case .unready(.notDurable) = $0 { true } else { false } }
    }

    @Test func aBareAppendThatIsNotCommittedStopsTheOthersUntilItEnds() throws {
        let server = try Self.shared.get()
        let fixture = try WriterFixture(try server.address(user: "node1"), deadline: 3_000)
        try fixture.waitUntilReady()
        let other = try PostgresAdministration(try server.address(user: "node2"))
        let generation = try #require(
            try other.rows("SELECT o_generation FROM tg.fence()").first?.integer(0))
        try other.execute(
            """
            BEGIN; SELECT tg.append(\(generation), 1, '\\x000102030405060708090a0b0c0d0e0f', 1, 0,
              '{}', '{}', '{}', '\\x01010101010101010101010101010101')
            """)
        #expect(try fixture.append(.init(91)).isOpen)
        try other.execute("ROLLBACK")
        try fixture.appendUntilAccepted(.init(92, key: 92))
    }
}
