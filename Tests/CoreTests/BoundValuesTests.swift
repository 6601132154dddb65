import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct BoundValuesTests {
    static let positions: [BoundValues.Position] = [
        .missing, .unset, .nothing, .value(""), .value("1"), .value("\u{0}"), .value("\u{1}\u{2}"),
        .value("é"), .value("e\u{301}"), .value(String(repeating: "x", count: 70_000)),
    ]

    @Test func `positions decode to what was encoded and no two keys share an encoding`() throws {
        let rule = try ruleSet([["entity": "E"]]).rules[0]
        var seen: [[UInt8]: [BoundValues.Position]] = [:]
        for first in Self.positions {
            for second in Self.positions {
                let key = BoundValues(rule: rule, positions: [first, second])
                #expect(key.positions == [first, second])
                #expect(key.isBroad == (first == .missing || second == .missing))
                #expect(seen.updateValue([first, second], forKey: key.bytes) == nil)
            }
        }
    }

    @Test func `two ways of writing one letter are two values`() {
        #expect(BoundValues.Position.value("é") != .value("e\u{301}"))
        #expect(Set<BoundValues.Position>([.value("é"), .value("e\u{301}")]).count == 2)
    }

    @Test func `a broad key agrees where it lacks the attribute and nowhere else`() throws {
        let rule = try ruleSet([["entity": "E"]]).rules[0]
        func key(_ positions: BoundValues.Position...) -> BoundValues {
            BoundValues(rule: rule, positions: positions)
        }
        #expect(key(.value("1"), .value("2")).agrees(withBroad: key(.missing, .value("2"))))
        #expect(!key(.value("1"), .value("3")).agrees(withBroad: key(.missing, .value("2"))))
        #expect(key(.unset, .value("2")).agrees(withBroad: key(.missing, .missing)))
        #expect(!key(.value("1"), .unset).agrees(withBroad: key(.missing, .value("2"))))
    }

    @Test func `keys of two rules differ`() throws {
        let rules = try ruleSet([["entity": "E"], ["entity": "F"]]).rules
        #expect(
            BoundValues(rule: rules[0], positions: []).hash
                != BoundValues(rule: rules[1], positions: []).hash)
    }
}
