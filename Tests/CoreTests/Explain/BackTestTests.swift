import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct BackTestTests {
    private func backTest(
        _ ruleSet: RuleSet, interval: Int64 = 0
    ) -> BackTest {
        var terms = PushScheduler.Terms()
        terms.interval = interval
        return BackTest(ruleSet, limits: Limits(), terms: terms, hash: testHash)
    }

    private let timeline = BackTest.Subject(kind: "k", target: .timeline)

    /// Whatever changes come when, the counted reloads are those that a shard sends to its streams.
    @Test(arguments: 0..<30)
    func `reloads are what a shard would have sent`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let catalog = try catalog([
            kind(
                [["entity": "E", "match": ["id": "$a"], "properties": ["p"]]],
                collapse: random.pick([0, 100, 1_000]))
        ])
        var gateway = SmallGateway(catalog)
        let ruleSet = try #require(gateway.shard.ruleSet(of: "app"))
        var test = backTest(ruleSet)
        let records = (0..<6).map {
            client([widget(["a": .single("\(random.below(3))")])], name: "c\($0)")
        }
        let streams = try records.map { try gateway.open($0, since: .after(1)) }
        var sent = 0
        func count() {
            sent += streams.reduce(0) { $0 + gateway.sent($1).count }
            gateway.shard.clearOutput()
        }
        count()
        sent = 0
        for _ in 0..<200 {
            let next = gateway.now + Int64(random.below(200))
            while let end = gateway.shard.nextWindowEnd, end <= next {
                gateway.now = end
                gateway.shard.endWindows(now: end)
                count()
            }
            gateway.now = next
            let change = Change(
                entity: "E", id: random.pick([nil, "0", "1", "2", "0", "1"]),
                properties: [random.pick(["p", "q"])])
            try gateway.change(change)
            count()
            test.replay(change, at: gateway.head, time: next)
        }
        while let end = gateway.shard.nextWindowEnd {
            gateway.now = end
            gateway.shard.endWindows(now: end)
            count()
        }
        test.finish()
        for record in records { test.count(record) }
        #expect(test.figures[timeline]?.reloads == sent)
        #expect(test.figures[timeline]?.holders == 6)
    }

    @Test func `pushes are those that the budget lets out`() throws {
        var test = backTest(try ruleSet([["entity": "E", "match": ["id": "$a"]]]))
        for minute: Int64 in 0..<1_440 {
            test.replay(
                Change(entity: "E", id: "1"), at: UInt64(minute + 1), time: minute * 60_000)
        }
        test.finish()
        test.count(device())
        test.count(device(["2"], named: "other", delivery: [apns("bb")]))
        test.count(device(named: "hook", delivery: [.webhook(url: "https://example.com")]))
        let figures = try #require(test.figures[timeline])
        #expect(figures.changes == 1_440 && figures.reloads == 2_880 && figures.holders == 3)
        let pushes = figures.pushes - 1_440
        #expect(pushes > 20 && pushes <= 48, "\(pushes)")
        #expect(figures.withheld > 1_300 && figures.withheld < 1_440)
    }

    @Test func `an interval withholds, and what waits goes out in one`() throws {
        var test = backTest(
            try ruleSet([["entity": "E", "match": ["id": "$a"]]]), interval: 300_000)
        for (place, second) in [Int64(0), 10, 20, 400].enumerated() {
            test.replay(
                Change(entity: "E", id: "1"), at: UInt64(place + 1), time: second * 1_000)
        }
        test.finish()
        test.count(device())
        // The pushes go out at 0, at 300 for two changes, and at 600 for the last.
        #expect(test.figures[timeline]?.pushes == 3)
        #expect(test.figures[timeline]?.withheld == 3)
    }

    @Test func `a browser has one budget for timelines and sets`() throws {
        let entity: JSONValue = ["entity": "E"]
        let catalog = try catalog([kind([entity], recommendations: [entity])])
        var test = backTest(RuleSet(catalog, sequence: 1, replacing: nil, hash: testHash))
        for minute: Int64 in 0..<1_440 {
            test.replay(Change(entity: "E"), at: UInt64(minute + 1), time: minute * 60_000)
        }
        test.finish()
        let sets = [
            RecommendationSet(kind: "k", items: [.init(parameters: [:], description: "d")])
        ]
        test.count(device(delivery: [.fcm(token: "t")], recommendations: sets))
        let pushes = try #require(test.figures[timeline]?.pushes)
        #expect(pushes > 20 && pushes <= 48)
        // Each push has both as its reasons.
        let set = BackTest.Subject(kind: "k", target: .recommendations)
        #expect(test.figures[set]?.pushes == pushes)
    }

    @Test func `what hits nothing, or everything, is counted`() throws {
        var test = backTest(try ruleSet([["entity": "E", "match": ["id": "$a"]]]))
        test.replay(Change(entity: "G"), at: 1, time: 0)
        test.replay(Change(entity: "E"), at: 2, time: 0)
        test.finish()
        test.count(device(["1", "2"], delivery: [.stream]))
        #expect(test.unmatched == 1 && test.broad == 1 && test.refused == 0)
        #expect(test.figures[timeline]?.reloads == 2)
        #expect(test.figures[timeline]?.pushes == 0)
    }
}
