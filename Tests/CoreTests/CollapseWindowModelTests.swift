import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct CollapseWindowModelTests {
    /// A key by its definition: a rule and a name, whatever their hash.
    private struct Name: Hashable {
        let rule: Int
        let name: String
    }

    private struct Window {
        var end: Int64
        let duration: Int64
        var waiting: [UInt64] = []
    }

    /// Windows open and end, their places are reused, and the keys of two rules have the same bytes
    /// and the same hash. The waiting and the due keys must be those of a dictionary.
    @Test(arguments: 0..<60)
    func `random changes and ends agree with a dictionary`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let keysMax = random.pick([1, 4, 1_000])
        let hashes = random.pick([1, 3, 1_000])
        let names = (0..<random.pick([2, 12])).map { "key \($0)" }
        var window = CollapseWindow(keysMax: keysMax)
        var model: [Name: Window] = [:]
        var now: Int64 = 0
        func key(_ name: Name) -> CollapseWindow.Key {
            let hash = name.name.utf8.reduce(UInt64(7)) { $0 &* 31 &+ UInt64($1) }
            return .init(
                rule: name.rule,
                values: BoundValues(
                    bytes: BoundValues.encoded(.value(name.name), after: []),
                    hash: hash % UInt64(hashes)))
        }
        func end() {
            let due = window.end(now: now)
            var expected: [CollapseWindow.Key: UInt64] = [:]
            for (name, open) in model where open.end <= now {
                if let latest = open.waiting.last {
                    expected[key(name)] = latest
                    model[name] = Window(end: now + open.duration, duration: open.duration)
                } else {
                    model[name] = nil
                }
            }
            #expect(due.count == expected.count)
            #expect(
                Dictionary(due.map { ($0.key, $0.sequence) }, uniquingKeysWith: { $1 }) == expected)
        }
        /// Another catalog has the rules in other slots, or lacks one of them.
        func replaceRules() {
            let slots = random.pick([[1, 0], [0, nil], [nil, 1]] as [[Int?]])
            var (kept, expected): ([Name: Window], [UInt64]) = ([:], [])
            for (name, open) in model {
                if let slot = slots[name.rule] {
                    kept[Name(rule: slot, name: name.name)] = open
                } else if let latest = open.waiting.last {
                    expected.append(latest)
                }
            }
            model = kept
            let due = window.endAll { slots[$0] }
            #expect(due.map(\.sequence) == expected.sorted())
        }
        for sequence in UInt64(1)...1_500 {
            let name = Name(rule: random.below(2), name: random.pick(names))
            let duration = random.pick([0, 5, 20, 1_000] as [Int64])
            let verdict = window.change(key(name), at: sequence, duration: duration, now: now)
            var expected = CollapseWindow.Verdict.fire
            if duration > 0 {
                if let open = model[name], !open.waiting.isEmpty || now < open.end {
                    model[name]?.waiting.append(sequence)
                    expected = open.waiting.isEmpty ? .begin : .wait
                } else if model[name] != nil || model.count < keysMax {
                    model[name] = Window(end: now + duration, duration: duration)
                }
            }
            #expect(verdict == expected, "at \(sequence)")
            now += random.pick([0, 0, 1, 7])
            // The caller may be late.
            if random.happens(40) { end() }
            if random.happens(1) { replaceRules() }
            #expect(window.count == model.count, "at \(sequence)")
            let oldest = model.values.compactMap(\.waiting.first).min()
            #expect(window.oldestWaiting == oldest, "at \(sequence)")
            #expect((window.nextEnd ?? .max) <= model.values.map(\.end).min() ?? .max)
            if model.isEmpty { #expect(window.nextEnd == nil) }
        }
        let rest = model.values.compactMap(\.waiting.last).sorted()
        #expect(window.endAll().map(\.sequence) == rest)
        #expect(window.count == 0 && window.oldestWaiting == nil)
    }
}
