import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct RaisedKeysTests {
    /// Returns the positions by definition: at each position every value of the change, then
    /// `unset`, with the first position varying slowest.
    static func positions(_ options: [[BoundValues.Position]]) -> [[BoundValues.Position]] {
        options.reduce([[]]) { heads, options in
            heads.flatMap { head in options.map { head + [$0] } }
        }
    }

    /// Lists of no, one or several values, of lengths around whole words, at one to three
    /// positions, with and without a default, bump the keys of the definition, in its order.
    @Test(arguments: 0..<60)
    func `a change raises every combination once and in order`(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        let hasDefault = random.happens(30)
        let attributes = Array(["id", "x", "y"].prefix(1 + random.below(3)))
        var match = JSONObject()
        for (name, source) in zip(attributes, ["$a", "$b", "$client.c"]) {
            match[name] = .string(source)
        }
        let rules = try ruleSet(
            [["entity": "E", "match": .object(match)], ["entity": "E"]],
            parameters: [
                hasDefault
                    ? ["name": "a", "type": "String", "default": "12345"]
                    : ["name": "a", "type": "String"],
                ["name": "b", "type": "String"],
            ])
        let bindings = rules.rules[0].bindings
        for _ in 0..<40 {
            func text() -> String { String("1234567890123".prefix(random.below(14))) }
            var change = Change(entity: "E", id: random.happens(80) ? text() : nil)
            for name in attributes.dropFirst() where random.happens(80) {
                change.attributes[name] = (0..<random.below(4)).map { _ in text() }
            }
            let options = bindings.map { binding -> [BoundValues.Position] in
                guard let values = change.values(of: binding.attribute) else { return [.missing] }
                return values.map { .value($0) }
                    + (binding.agreesUnset(with: values) ? [.unset] : [])
            }
            let decision = try rules.decide(change, limits: Limits())
            let expected =
                Self.positions(options).map {
                    BoundValues(rule: rules.rules[0], positions: $0)
                } + [BoundValues(rule: rules.rules[1], positions: [])]
            #expect(decision.keys.map(\.values) == expected, "\(change)")
            #expect(decision.keys.count == expected.count)
            #expect(decision.isBroad == options.contains([.missing]), "\(change)")
            decision.keys.visit { index, rule, isBroad, key in
                #expect(isBroad == key.values.isBroad)
                #expect(decision.keys[index].values == key.values)
                #expect(decision.keys[index].rule == rule)
            }
        }
    }
}
