import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

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
            guard try gateways.putCatalog(nodes[0]) == 201 else {
                throw TestFailure("the catalog is refused")
            }
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
