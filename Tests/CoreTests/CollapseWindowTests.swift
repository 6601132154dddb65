import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct CollapseWindowTests {
    static func key(_ name: String) -> CollapseWindow.Key {
        let rules = try? ruleSet([["entity": "E", "match": ["id": "$a"]]])
        guard let rule = rules?.rules.first else { fatalError("the catalog of this test is good") }
        return .init(rule: 0, values: BoundValues(rule: rule, positions: [.value(name)]))
    }
    static let a = key("a")
    static let b = key("b")

    @Test func `a long window at the front does not let others pile up behind it`() {
        var window = CollapseWindow(keysMax: 10)
        _ = window.change(Self.a, at: 1, duration: 1_000_000, now: 0)
        _ = window.change(Self.a, at: 2, duration: 1_000_000, now: 0)
        var sequence: UInt64 = 2
        for turn in 0..<2_000 {
            for _ in 0..<2 {
                sequence += 1
                _ = window.change(Self.b, at: sequence, duration: 10, now: Int64(turn) * 10)
            }
            _ = window.end(now: Int64(turn) * 10 + 10)
            #expect(window.oldestWaiting == 2)
        }
        let waiting = Mirror(reflecting: window).children.first { $0.label == "waitingSince" }
        let count = (waiting?.value as? any Collection)?.count ?? .max
        #expect(count <= 2 * window.count + 64 + 1)
    }

    @Test func `a window near the end of time does not overflow`() {
        var window = CollapseWindow(keysMax: 10)
        #expect(window.change(Self.a, at: 1, duration: 100, now: .max - 5) == .fire)
        #expect(window.nextEnd == .max)
    }

    /// Every interleaving of up to four events of two keys with the passing of time keeps three
    /// promises: each change is notified once within its window, each key gets at most one
    /// notification per window, and the oldest waiting change is the one the definition gives.
    @Test func `all interleavings of up to four events keep their promises`() {
        enum Event: CaseIterable { case a, b, short, long }
        let duration: Int64 = 100
        var count = 0
        func play(_ events: [Event]) {
            count += 1
            var window = CollapseWindow(keysMax: 10)
            var now: Int64 = 0
            var sequence: UInt64 = 0
            // The naive model keeps, for each key, what waits since when, and when it was last
            // notified.
            var waiting: [[(sequence: UInt64, since: Int64)]] = [[], []]
            var told: [Int64?] = [nil, nil]
            func tell(_ key: Int, _ sequence: UInt64) {
                if let last = told[key] { #expect(now - last >= duration, "\(events)") }
                told[key] = now
                #expect(sequence == waiting[key].last?.sequence, "\(events)")
                for change in waiting[key] { #expect(now - change.since <= duration) }
                waiting[key] = []
            }
            for event in events + [.long, .long, .long] {
                switch event {
                case .a, .b:
                    let key = event == .a ? 0 : 1
                    sequence += 1
                    waiting[key].append((sequence, now))
                    let verdict = window.change(
                        key == 0 ? Self.a : Self.b, at: sequence, duration: duration, now: now)
                    if verdict == .fire { tell(key, sequence) }
                case .short, .long:
                    let until = now + (event == .short ? 60 : 100)
                    // The caller comes when the window ends, as its timer does.
                    while let end = window.nextEnd, end <= until {
                        now = end
                        for due in window.end(now: now) {
                            tell(due.key == Self.a ? 0 : 1, due.sequence)
                        }
                    }
                    now = until
                }
                let oldest = (waiting[0] + waiting[1]).map(\.sequence).min()
                #expect(window.oldestWaiting == oldest, "\(events)")
            }
            #expect(waiting[0].isEmpty && waiting[1].isEmpty, "\(events)")
            #expect(window.count == 0)
        }
        func extend(_ events: [Event], by left: Int) {
            play(events)
            guard left > 0 else { return }
            for event in Event.allCases { extend(events + [event], by: left - 1) }
        }
        extend([], by: 6)
        #expect(
            count
                == (0...6).reduce(0) { total, length in
                    total + (0..<length).reduce(1) { p, _ in p * 4 }
                })
    }
}

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
