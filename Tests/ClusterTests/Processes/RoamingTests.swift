import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Clients of two gateways that share one log.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct RoamingTests {
    private typealias Cursors = (phone: String, tablet: String)

    private func cursor(_ answer: TestHTTPAnswer) throws -> String {
        #expect([200, 201].contains(answer.status), "\(answer.text)")
        guard let cursor = answer["cursor"]?.stringValue else { throw TestFailure(answer.text) }
        return cursor
    }

    @Test func `what one node answered is in force at the other`() throws {
        let gateways = try ClusterGateways(ClusterFixture())
        let nodes = [try gateways.start(1), try gateways.start(2)]
        #expect(try gateways.putCatalog(nodes[0]) == 201)
        // The other node learns of the catalog before it decides.
        let cursor = try cursor(gateways.register("phone", ["panda"], at: nodes[1]))
        for number in 0..<20 {
            let (one, other) = (nodes[number % 2], nodes[(number + 1) % 2])
            let posted = try gateways.change("panda", id: "\(number)", at: one)
            #expect(posted.status == 202, "\(posted.text)")
            // A poll at the other node knows it at once.
            let polled = try gateways.poll("phone", since: cursor, at: other)
            #expect(polled.stale == ["panda"])
            let again = try gateways.change("panda", id: "\(number)", at: other)
            #expect(again["duplicates"]?.integerValue == 1, "\(again.text)")
            #expect(try gateways.poll("phone", since: polled.cursor, at: one).stale == [])
        }
        // What is not there is not there anywhere.
        #expect(throws: TestFailure.self) {
            _ = try gateways.poll("stranger", since: nil, at: nodes[0])
        }
    }

    @Test func `the leader forgets the streams of a node that was killed`() throws {
        let gateways = try ClusterGateways(ClusterFixture())
        let nodes = [try gateways.start(1), try gateways.start(2)]
        #expect(try gateways.putCatalog(nodes[0]) == 201)
        let cursor = try cursor(gateways.register("phone", ["panda"], at: nodes[0]))
        let stream = try gateways.stream("phone", from: cursor, at: nodes[1])
        #expect(stream.status == 200)
        func awaitStreams(_ count: Int64) throws {
            let path = "/v1/apps/\(ClusterGateways.app)/clients/phone"
            try blockUntil("the leader knows of \(count) streams") {
                try nodes[0].http().request("GET", path, token: gateways.backend())["streams"]
                    == .integer(count)
            }
        }
        try awaitStreams(1)
        nodes[1].kill()
        try nodes[1].start()
        try awaitStreams(0)
    }

    @Test func `a client that loses its node goes on at the other`() throws {
        let gateways = try ClusterGateways(ClusterFixture())
        let (one, other) = (try gateways.start(1), try gateways.start(2))
        #expect(try gateways.putCatalog(one) == 201)
        let cursor = try cursor(gateways.register("phone", ["panda"], at: one))
        let first = try gateways.stream("phone", from: cursor, at: other)
        #expect(first.status == 200)
        #expect(try gateways.change("panda", id: "1", at: one).status == 202)
        #expect(try first.next() == ["panda"])
        let resumed = try #require(first.cursor)
        other.kill()
        #expect(try first.next() == nil)
        #expect(try gateways.change("panda", id: "2", at: one).status == 202)
        let second = try gateways.stream("phone", from: resumed, at: one)
        #expect(try second.next() == ["panda"])
        // Nothing is told twice.
        let last = try #require(second.cursor)
        second.close()
        try other.start()
        #expect(try gateways.poll("phone", since: last, at: other).stale == [])
        #expect(try gateways.poll("phone", since: resumed, at: other).stale == ["panda"])
    }

    @Test func `an open stream follows what is registered at the other node`() throws {
        let gateways = try ClusterGateways(ClusterFixture())
        let (one, other) = (try gateways.start(1), try gateways.start(2))
        #expect(try gateways.putCatalog(one) == 201)
        let cursor = try cursor(gateways.register("phone", ["panda"], at: one))
        let stream = try gateways.stream("phone", from: cursor, at: one)
        #expect(stream.status == 200)
        _ = try self.cursor(gateways.register("phone", ["hero"], at: other))
        #expect(try gateways.change("panda", id: "1", at: other).status == 202)
        #expect(try gateways.change("hero", id: "2", at: other).status == 202)
        #expect(try stream.next() == ["hero"])
        let removed = try gateways.http(other).request(
            "DELETE", "/v1/apps/\(ClusterGateways.app)/clients/phone", token: gateways.backend())
        #expect(removed.status == 204)
        #expect(try stream.next() == nil)
        #expect(try gateways.stream("phone", from: nil, at: one).status == 404)
    }

    @Test func `a cursor of another history is stale`() throws {
        let gateways = try ClusterGateways(ClusterFixture())
        let one = try gateways.start(1)
        #expect(try gateways.putCatalog(one) == 201)
        let cursor = try cursor(gateways.register("phone", ["panda"], at: one))
        let foreign = try ClusterGateways(ClusterFixture())
        let two = try foreign.start(1)
        #expect(try foreign.putCatalog(two) == 201)
        _ = try self.cursor(foreign.register("phone", ["panda"], at: two))
        #expect(try foreign.poll("phone", since: cursor, at: two).stale == ["all"])
        #expect(try gateways.poll("phone", since: cursor, at: one).stale == [])
    }
}
