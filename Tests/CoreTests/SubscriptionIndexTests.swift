import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

extension SubscriptionIndex {
    /// Returns the streams that a bumped key reaches, in the order of the visit.
    mutating func streams(_ values: BoundValues) -> [UInt32] {
        var streams: [UInt32] = []
        visitHolders(rule: 0, values: values) { streams += $0.map(\.stream) }
        return streams
    }
}

@Suite struct SubscriptionIndexTests {
    static func rule(_ bindings: Int) throws -> Rule {
        let match: [JSONValue] = [["id": "$a"], ["id": "$a", "x": "$b"]]
        return try ruleSet([["entity": "E", "match": match[bindings - 1]]]).rules[0]
    }

    @Test func `dead holders are swept when they are the majority and the last takes the list`()
        throws
    {
        let rule = try Self.rule(1)
        var index = SubscriptionIndex(rules: [rule])
        let key = BoundValues(rule: rule, positions: [.value("1")])
        for stream in 0..<100 {
            index.insert(.init(stream: UInt32(stream), generation: 1), rule: 0, values: key)
        }
        func count() -> Int {
            var count = 0
            index.visitHolders(rule: 0, values: key) { count += $0.count }
            return count
        }
        for ended in 1...60 {
            index.end(rule: 0, values: key) { $0.stream >= UInt32(ended) }
            // There are never more dead entries than live ones, and no live one is lost.
            #expect(count() >= 100 - ended && count() <= 2 * (100 - ended) + 1)
        }
        for ended in 61...100 { index.end(rule: 0, values: key) { $0.stream >= UInt32(ended) } }
        #expect(count() == 0)
        let isHeld = index.isHeld(rule: 0, values: key)
        #expect(!isHeld)
        index.end(rule: 0, values: key) { _ in true }
    }

    /// The order was that of a dictionary, which differs from process to process, so the frames of
    /// one turn were written in another order after each start.
    @Test func `a broad change visits in the order in which the keys came`() throws {
        let rule = try Self.rule(2)
        var index = SubscriptionIndex(rules: [rule])
        for stream in 0..<100 {
            let values: [BoundValues.Position] = [.value("\(stream)"), .value("\(stream % 2)")]
            index.insert(
                .init(stream: UInt32(stream), generation: 0), rule: 0,
                values: BoundValues(rule: rule, positions: values))
        }
        let all = BoundValues(rule: rule, positions: [.missing, .missing])
        let odd = BoundValues(rule: rule, positions: [.missing, .value("1")])
        #expect(index.streams(all) == Array(0..<100))
        #expect(index.streams(odd) == Array(stride(from: 1, to: 100, by: 2)))
    }

    /// Streams come, go and come back. The streams that an exact or broad key reaches are compared
    /// with a list that is searched by definition.
    @Test(arguments: 0..<60)
    func `whatever was inserted and ended is visited as defined`(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        let rule = try Self.rule(2)
        // Hashes with few bits collide all the time in the table of the exact keys.
        let mask: UInt64 = random.pick([0, 3, .max])
        let positions: [BoundValues.Position] = [
            .unset, .nothing, .value(""), .value("1"), .value("2"), .value("12345678"),
        ]
        // Few values make long lists, whose dead entries are swept.
        let own = Array(positions.prefix(random.pick([1, 2, 6])))
        func exact(_ positions: [BoundValues.Position]) -> BoundValues {
            let key = BoundValues(rule: rule, positions: positions)
            return BoundValues(bytes: key.bytes, hash: key.hash & mask)
        }
        var index = SubscriptionIndex(rules: [rule])
        var model: [(holder: SubscriptionIndex.Subscriber, positions: [BoundValues.Position])] = []
        var generations: [UInt32] = Array(repeating: 0, count: 40)
        func compare(_ asked: [BoundValues.Position]) {
            let isBroad = asked.contains(.missing)
            let values = isBroad ? BoundValues(rule: rule, positions: asked) : exact(asked)
            let expected = model.filter {
                zip($0.positions, asked).allSatisfy { $1 == .missing || $0 == $1 }
            }
            var alive: [UInt32] = []
            index.visitHolders(rule: 0, values: values) {
                for holder in $0 where generations[Int(holder.stream)] == holder.generation {
                    alive.append(holder.stream)
                }
            }
            #expect(alive.sorted() == expected.map(\.holder.stream).sorted(), "\(asked)")
            let isHeld = index.isHeld(rule: 0, values: values)
            #expect(isHeld == !expected.isEmpty, "\(asked)")
        }
        for step in 0..<600 {
            let stream = random.below(generations.count)
            let held = model.filter { $0.holder.stream == stream }
            if held.isEmpty {
                let holder = SubscriptionIndex.Subscriber(
                    stream: UInt32(stream), generation: generations[stream])
                var taken: [[BoundValues.Position]] = []
                for _ in 0..<random.below(4) {
                    let positions = [random.pick(own), random.pick(own)]
                    guard !taken.contains(positions) else { continue }
                    taken.append(positions)
                    model.append((holder, positions))
                    index.insert(holder, rule: 0, values: exact(positions))
                }
            } else {
                generations[stream] &+= 1
                model.removeAll { $0.holder.stream == stream }
                for (_, positions) in held {
                    index.end(rule: 0, values: exact(positions)) {
                        generations[Int($0.stream)] == $0.generation
                    }
                }
            }
            if step > 50, step % 5 == 0 {
                let asked = own + [.missing, .missing, .missing]
                compare([random.pick(asked), random.pick(asked)])
            }
        }
    }
}
