import ClusterTestSupport
import GatewayTestSupport
import Testing

@testable import GatewayEngine
@testable import GatewayFleet
@testable import GatewayPostgres

/// The tasks that one node does for all.
@Suite(.enabled(if: PostgresServer.isInstalled)) struct FleetLeasesTests {
    @Test func `one node makes the slices of the log, and another one after it`() async throws {
        let cluster = try ClusterFixture(slice: 8)
        let first = try await EngineFixture.fleetNode(1, of: cluster)
        try await eventually("the only node has every task") {
            ClusterLease.allCases.allSatisfy { first.node.leases.holds($0) }
        }
        let second = try await EngineFixture.fleetNode(2, of: cluster)
        func holder() -> (node: FleetNode, other: FleetNode)? {
            switch (
                first.node.leases.holds(.retention), second.node.leases.holds(.retention)
            ) {
            case (true, false): (first.node, second.node)
            case (false, true): (second.node, first.node)
            default: nil
            }
        }
        try await eventually("one of the nodes has the task") { holder() != nil }
        func slices() throws -> Int64 {
            try #require(
                try cluster.administration().rows(
                    """
                    SELECT count(*) FROM pg_inherits WHERE inhparent = 'tg.log'::regclass
                    """
                ).first?.integer(0))
        }
        let before = try slices()
        let engine = EngineFixture(first.node.engine) {}
        try await engine.put(["hero"])
        for number in 0..<20 {
            _ = try await engine.changes.post(
                [EngineFixture.event("\(number)")], app: EngineFixture.app)
        }
        let nodes = try #require(holder())
        #expect(await nodes.other.leases.retain() == nil)
        #expect(try slices() == before)
        // Two more slices have been begun, and two are kept ahead.
        let outcome = try #require(try await nodes.node.leases.retain()?.get())
        #expect(outcome.missingSlices == 0)
        #expect(try slices() == before + 2)
        try await first.stop()
        try await second.stop()
    }
}
