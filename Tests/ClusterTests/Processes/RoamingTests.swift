import APNsSimulator
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
        try gateways.putCatalog(nodes[0])
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
        try gateways.putCatalog(nodes[0])
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
        try gateways.putCatalog(one)
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
        try gateways.putCatalog(one)
        let cursor = try cursor(gateways.register("phone", ["panda"], at: one))
        let stream = try gateways.stream("phone", from: cursor, at: one)
        #expect(stream.status == 200)
        _ = try self.cursor(gateways.register("phone", ["hero"], at: other))
        #expect(try gateways.change("panda", id: "1", at: other).status == 202)
        #expect(try gateways.change("hero", id: "2", at: other).status == 202)
        #expect(try stream.next() == ["hero"])
        let removed = try gateways.repeating {
            try gateways.http(other).request(
                "DELETE", "/v1/apps/\(ClusterGateways.app)/clients/phone",
                token: gateways.backend())
        }
        // A refusal for want of an answer may have removed it.
        #expect([204, 404].contains(removed.status))
        #expect(try stream.next() == nil)
        #expect(try gateways.stream("phone", from: nil, at: one).status == 404)
    }

    @Test func `a ticket of any node is good once at all of them`() throws {
        let gateways = try ClusterGateways(ClusterFixture())
        // The first one leads.
        let nodes = [try gateways.start(1), try gateways.start(2)]
        try gateways.putCatalog(nodes[0])
        let cursor = try cursor(gateways.register("phone", ["panda"], at: nodes[0]))
        let path = "/v1/apps/\(ClusterGateways.app)/clients/phone"
        func open(_ ticket: String, at node: GatewayProcess) -> TestHTTPStream {
            let target = "\(path)/reloads?ticket=\(ticket)&since=\(cursor)"
            return TestHTTPStream(url: node.url, ca: node.ca, path: target, token: nil)
        }
        for (asked, used) in [(0, 1), (1, 0), (1, 1)] {
            let ordered = try gateways.repeating {
                try nodes[asked].http().request(
                    "POST", path + "/tickets", token: gateways.token("phone"))
            }
            #expect(ordered.status == 201, "\(ordered.text)")
            let ticket = try #require(ordered["ticket"]?.stringValue)
            let stream = open(ticket, at: nodes[used])
            #expect(stream.head()?.status == 200, "\(asked) \(used)")
            stream.close()
            for node in nodes { #expect(open(ticket, at: node).head()?.status == 401) }
        }
    }

    @Test func `a cursor of another history is stale`() throws {
        let gateways = try ClusterGateways(ClusterFixture())
        let one = try gateways.start(1)
        try gateways.putCatalog(one)
        let cursor = try cursor(gateways.register("phone", ["panda"], at: one))
        let foreign = try ClusterGateways(ClusterFixture())
        let two = try foreign.start(1)
        try foreign.putCatalog(two)
        _ = try self.cursor(foreign.register("phone", ["panda"], at: two))
        #expect(try foreign.poll("phone", since: cursor, at: two).stale == ["all"])
        #expect(try gateways.poll("phone", since: cursor, at: one).stale == [])
    }
}

/// A client that changes its node at random while changes are posted and nodes are killed and drained.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct RandomRoamingTests {
    private static let characters = (0..<8).map { "c\($0)" }

    /// The changes that were posted, and what the client was told of them.
    private struct Record {
        /// The characters with changes that the client was not told of.
        var pending: Set<String> = []
        /// The number of characters that it was told of without a change since the last time.
        var repeated = 0
        var everything = 0

        mutating func told(_ stale: [String]) {
            for character in stale where character == "all" { everything += 1 }
            for character in stale where character != "all" {
                if pending.remove(character) == nil { repeated += 1 }
            }
        }
    }

    private final class Run {
        let gateways: ClusterGateways
        let nodes: [GatewayProcess]
        var random: SplitMix64
        var record = Record()
        var stream: ToldStream
        var cursor: String
        var posts = 0

        init(seed: UInt64) throws {
            gateways = try ClusterGateways(ClusterFixture())
            nodes = [try gateways.start(1), try gateways.start(2)]
            random = SplitMix64(seed: seed)
            try gateways.putCatalog(nodes[0])
            let registered = try gateways.register(
                "phone", RandomRoamingTests.characters, at: nodes[1])
            guard let cursor = registered["cursor"]?.stringValue else {
                throw TestFailure(registered.text)
            }
            self.cursor = cursor
            stream = try gateways.stream("phone", from: cursor, at: nodes[0])
        }

        var node: GatewayProcess { nodes[Int.random(in: 0..<2, using: &random)] }

        /// Takes what the stream has told.
        func take(seconds: Double = 0.02) throws {
            while let stale = try stream.next(seconds: seconds) { record.told(stale) }
            cursor = stream.cursor ?? cursor
        }

        /// Takes what the stream tells until a condition on the pending characters holds.
        func drain(until isDone: (Set<String>) -> Bool) throws {
            try blockUntil("told", details: { "\(record.pending) after \(posts) posts" }) {
                try take()
                return isDone(record.pending)
            }
        }

        /// Goes on at a node.
        func move() throws {
            try take()
            stream.close()
            let node = node
            try blockUntil("the stream opens", details: { "\(stream.status ?? 0)" }) {
                stream = try gateways.stream("phone", from: cursor, at: node)
                return stream.status == 200
            }
        }

        /// Posts a change, and repeats it at any node until it is accepted.
        func post() throws {
            let characters = RandomRoamingTests.characters
            let character = characters[Int.random(in: characters.indices, using: &random)]
            // Two changes of one character may be told as one or as two.
            try drain(until: { !$0.contains(character) })
            record.pending.insert(character)
            posts += 1
            try blockUntil("the change is accepted") {
                let answer = try? gateways.change(character, id: "\(posts)", once: true, at: node)
                return answer?.status == 202
            }
        }

        func restart() throws {
            let node = node
            if Bool.random(using: &random) { node.kill() } else { node.terminate() }
            try node.start()
            // The client notices the end of its stream, and connects again.
            try move()
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `nothing is missed and nothing told twice`(seed: UInt64) throws {
        let run = try Run(seed: seed)
        for step in 0..<80 {
            switch Int.random(in: 0..<20, using: &run.random) {
            case 0..<12: try run.post()
            case 12..<18: try run.move()
            case 18: try run.take()
            default: if step > 5 { try run.restart() }
            }
        }
        try run.drain(until: \.isEmpty)
        #expect(run.record.repeated == 0)
        #expect(run.record.everything == 0)
    }
}

/// A gateway whose log goes on in a cluster.
@Suite(.enabled(if: PostgresServer.isInstalled), .repeatedAfterStalls)
struct MoveTests {
    @Test func `clients, events and pushes go on where they were`() throws {
        let gateways = try ClusterGateways(ClusterFixture(), pushes: true)
        let data = try GatewayProcess.temporaryDirectory()
        let alone = try gateways.startAlone(data: data)
        try gateways.putCatalog(alone)
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
