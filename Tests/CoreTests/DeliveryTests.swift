import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct DeliveryTests {
    /// Covers more streams than are prepared at a time, with several notifications in one turn.
    @Test func `many streams get every notification of a turn in order`() throws {
        var gateway = try ShardTests.gateway()
        let count = 200
        var streams: [StreamID] = []
        for index in 0..<count {
            // Every third client also holds another key, and every fifth holds only that one.
            let ids = index % 5 == 0 ? ["2"] : index % 3 == 0 ? ["1", "2"] : ["1"]
            let own = client(
                ids.map { widget(["a": .single($0)]) } + [widget(kind: "l")], name: "c\(index)")
            streams.append(try gateway.open(own, since: .after(1)))
        }
        try gateway.change(Change(entity: "E", id: "1"))
        try gateway.change(Change(entity: "E", id: "2"))
        try gateway.change(Change(entity: "F"))
        for (index, stream) in streams.enumerated() {
            let one = index % 5 == 0 ? [] : ["k(a=1) id 2"]
            let two = index % 5 == 0 || index % 3 == 0 ? ["k(a=2) id 3"] : []
            #expect(gateway.sent(stream) == one + two + ["l id 4"], "stream \(index)")
        }
        #expect(gateway.shard.output.frames.count == 3)
        #expect(gateway.shard.output.touched.count == count)
        gateway.shard.clearOutput()
        try gateway.change(Change(entity: "F"))
        #expect(gateway.shard.output.deliveries.count == count)
    }

    /// Four streams of one client close from both ends and from the middle, and the others are
    /// still found when the client registers anew.
    @Test(arguments: [[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3], [2, 0, 3, 1]])
    func `a client's streams close in any order`(order: [Int]) throws {
        var gateway = try ShardTests.gateway()
        let streams = try (0..<4).map { _ in
            try gateway.open(ShardTests.own("1"), since: .after(1))
        }
        var open = Set(streams)
        for place in order {
            gateway.reload(.client("client"))
            let told = gateway.shard.output.touched.map { $0.stream }
            #expect(told == streams.filter(open.contains))
            gateway.shard.clearOutput()
            gateway.shard.close(streams[place])
            open.remove(streams[place])
        }
        gateway.reload(.client("client"))
        #expect(gateway.shard.output.isEmpty)
    }
}
