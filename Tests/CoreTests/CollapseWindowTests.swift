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
