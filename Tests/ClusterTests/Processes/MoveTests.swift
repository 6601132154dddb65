import APNsSimulator
import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// A gateway whose log goes on in a cluster.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct MoveTests {
    @Test func `clients, events and pushes go on where they were`() throws {
        let gateways = try ClusterGateways(ClusterFixture(), pushes: true)
        let data = try GatewayProcess.temporaryDirectory()
        let alone = try gateways.startAlone(data: data)
        #expect(try gateways.putCatalog(alone) == 201)
        let token = String(repeating: "a1", count: 32)
        _ = try gateways.register("phone", ["panda"], pushToken: token, at: alone)
        _ = try gateways.register("pad", ["panda"], at: alone)
        #expect(try gateways.change("panda", id: "1", at: alone).status == 202)
        var told = try gateways.poll("pad", since: nil, at: alone).cursor
        try blockUntil("it is pushed", details: { alone.standardErrorTail }) {
            gateways.apns?.record.taken == 1
        }
        #expect(alone.terminate() == .status(0))

        let (exit, output) = try GatewayProcess.run([
            "move", "--from", data, "--to", gateways.cluster.url(), "--key", gateways.key,
        ])
        #expect(exit == .status(0), "\(output)")
        let again = try gateways.startAlone(data: data, startsNow: false)
        #expect(throws: TestFailure.self) { try again.start() }
        #expect(again.standardErrorTail.contains("set cluster.url"))

        let nodes = [try gateways.makeNode(1, data: data), try gateways.start(2)]
        for (number, node) in nodes.enumerated() {
            #expect(try gateways.poll("pad", since: told, at: node).stale == [])
            let known = try gateways.change("panda", id: "1", at: node)
            #expect(known["duplicates"]?.integerValue == 1, "\(known.text)")
            #expect(try gateways.change("panda", id: "new\(number)", at: node).status == 202)
            let next = try gateways.poll("pad", since: told, at: node)
            #expect(next.stale == ["panda"])
            told = next.cursor
        }
        // Who was pushed to is pushed to again for what is new only, and not before its time.
        #expect(gateways.apns?.record.taken == 1)
        let used = try GatewayProcess.run([
            "move", "--from", data, "--to", gateways.cluster.url(), "--key", gateways.key,
        ])
        #expect(used.exit == .status(1) && used.output.contains("in use"), "\(used.output)")
    }
}
