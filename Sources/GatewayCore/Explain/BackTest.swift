import WidgetModel

/// What a catalog would have made of changes that happened: reloads and pushes, kind by kind.
///
/// The changes are decided and collapsed as they are live; then every client is held against what
/// was said. Pushes are counted as if no stream reached anybody and nobody acknowledged anything: the
/// most there can be.
package struct BackTest: Sendable {
    /// What is told apart.
    package struct Subject: Sendable, Hashable {
        /// The kind.
        package let kind: String
        /// What of it becomes stale.
        package let target: Target
    }

    /// What it comes to.
    package struct Figures: Sendable, Equatable {
        /// Changes that hit it.
        package var changes = 0
        /// Notifications that its holders get, each holder's counted.
        package var reloads = 0
        /// Pushes to devices and webhooks of which it is a reason.
        package var pushes = 0
        /// Notifications that the budget, or the interval between pushes, holds back for a device.
        package var withheld = 0
        /// What holds some of it.
        package var holders = 0
    }

    /// Something that was said of a key.
    private struct Event: Sendable {
        let sequence: UInt64
        let at: Int64
        let urgency: Urgency
    }

    /// Something said to one client.
    private struct Told {
        let event: Event
        let kind: String
    }

    /// How often a device may be pushed to.
    package struct Terms: Sendable {
        /// The budget.
        package var budget: PushBudget.Terms
        /// The least time between two pushes for the same kind, in milliseconds.
        package var interval: Int64
        /// The same for single kinds.
        package var intervals: [String: Int64]

        /// Those of the desk.
        package init(_ terms: PushDesk.Terms) {
            budget = terms.budget
            interval = terms.interval
            intervals = terms.intervals
        }
    }

    /// Notifications that are kept, 32 bytes each; the replay ends where there would be more.
    package static let eventsMax = 4_000_000
    private static let unionsMax = 100_000

    /// The figures so far.
    package private(set) var figures: [Subject: Figures] = [:]
    /// Changes that hit no rule.
    package private(set) var unmatched = 0
    /// Changes that hit a rule for lack of an attribute.
    package private(set) var broad = 0
    /// Changes that the catalog would have had refused.
    package private(set) var refused = 0

    private let ruleSet: RuleSet
    private let limits: Limits
    private let terms: Terms
    private let hash: SipHash
    private var events: [UInt64: [Event]] = [:]
    private var eventCount = 0
    private var broadSlots: Set<Int> = []
    private var windows = CollapseWindow(keysMax: CoreLimits().collapseKeysMax)
    private var urgencies: [UInt64: Urgency] = [:]
    private var unions: [[UInt64]: Int] = [:]
    /// When the change replayed last was.
    private var last = Int64.min

    /// Nothing was replayed yet.
    package init(_ ruleSet: RuleSet, limits: Limits, terms: Terms, hash: SipHash) {
        self.ruleSet = ruleSet
        self.limits = limits
        self.terms = terms
        self.hash = hash
    }

    /// Whether no more changes can be replayed.
    package var isFull: Bool { eventCount >= Self.eventsMax }

    // MARK: Changes

    /// A change that happened, at a time in milliseconds since 1970; in the order of the log.
    package mutating func replay(_ change: Change, at sequence: UInt64, time: Int64) {
        endWindows(time)
        let decision: RuleSet.Decision
        do throws(RuleSet.TooManyKeys) {
            decision = try ruleSet.decide(change, limits: limits)
        } catch {
            refused += 1
            return
        }
        if decision.isUnmatched { unmatched += 1 }
        if decision.isBroad { broad += 1 }
        var hit: Set<Subject> = []
        for key in decision.keys {
            let rule = ruleSet.rules[key.rule]
            let subject = Subject(kind: rule.kind, target: rule.target)
            if hit.insert(subject).inserted { figures[subject, default: Figures()].changes += 1 }
            if key.values.isBroad { broadSlots.insert(key.rule) }
            let verdict = windows.change(
                .init(rule: key.rule, values: key.values), at: sequence, duration: rule.collapse,
                now: time)
            if verdict == .fire {
                add(key.values.hash, Event(sequence: sequence, at: time, urgency: change.urgency))
            } else {
                urgencies[key.values.hash] = change.urgency
            }
        }
    }

    /// All changes were replayed.
    package mutating func finish() {
        for due in windows.endAll() { add(due, at: nil) }
    }

    private mutating func endWindows(_ time: Int64) {
        while let end = windows.nextEnd, end <= time {
            for due in windows.end(now: end) { add(due, at: end) }
        }
        last = max(last, time)
    }

    private mutating func add(_ due: CollapseWindow.Due, at time: Int64?) {
        let hash = due.key.values.hash
        let urgency = urgencies.removeValue(forKey: hash) ?? .normal
        add(hash, Event(sequence: due.sequence, at: time ?? last, urgency: urgency))
    }

    private mutating func add(_ key: UInt64, _ event: Event) {
        events[key, default: []].append(event)
        eventCount += 1
    }

    // MARK: Clients

    /// A client that is registered.
    package mutating func count(_ record: ClientRecord) {
        var pushed: [PushBudget.Channel: [Told]] = [:]
        ruleSet.visitItems(of: record.registration) { item, rules, parameters in
            let subject = Subject(
                kind: item.kind, target: item.isSet ? .recommendations : rules.target)
            let keys = keys(of: item, rules, parameters, record)
            figures[subject, default: Figures()].holders += 1
            guard !keys.isEmpty else { return }
            let reloads = union(keys)
            figures[subject, default: Figures()].reloads += reloads
            switch item.pushChannel(in: record.registration) {
            case .webhook?: figures[subject, default: Figures()].pushes += reloads
            case .widgets?: add(keys, item.kind, to: &pushed[.widgets, default: []])
            case .controls?: add(keys, item.kind, to: &pushed[.controls, default: []])
            case .background?: add(keys, item.kind, to: &pushed[.background, default: []])
            case .stream?, .poll?, nil: break
            }
        }
        guard !pushed.isEmpty else { return }
        for (channel, told) in pushed { push(told, channel) }
    }

    /// The keys something depends on of which anything was said.
    private func keys(
        of item: HeldItem, _ rules: KindRules, _ parameters: [[String: ParameterValue]],
        _ record: ClientRecord
    ) -> [UInt64] {
        var keys: Set<UInt64> = []
        for slot in rules.slots.prefix(rules.slotsInForce) {
            let rule = ruleSet.rule(slot)
            guard (rule.target == .recommendations) == item.isSet else { continue }
            let isBroad = broadSlots.contains(slot)
            for parameters in parameters {
                rule.visitKeys(parameters: parameters, attributes: record.attributes) { values in
                    func look(_ hash: UInt64) { if events[hash] != nil { keys.insert(hash) } }
                    if isBroad {
                        rule.visitHashes(reaching: values, look)
                    } else {
                        look(values.hash)
                    }
                }
            }
        }
        return keys.sorted()
    }

    /// How many notifications keys have together: several of one change are one.
    private mutating func union(_ keys: [UInt64]) -> Int {
        if keys.count == 1 { return events[keys[0]]?.count ?? 0 }
        if let known = unions[keys] { return known }
        let count = Set(keys.flatMap { events[$0] ?? [] }.map(\.sequence)).count
        if unions.count < Self.unionsMax { unions[keys] = count }
        return count
    }

    private func add(_ keys: [UInt64], _ kind: String, to told: inout [Told]) {
        for key in keys {
            told += (events[key] ?? []).map { Told(event: $0, kind: kind) }
        }
    }

    /// Lets a device's budget decide what is said to it, in the order of time.
    private mutating func push(_ told: [Told], _ channel: PushBudget.Channel) {
        let told = told.sorted {
            ($0.event.at, $0.event.sequence) < ($1.event.at, $1.event.sequence)
        }
        guard let first = told.first else { return }
        let target: (String) -> Subject = { [ruleSet] kind in
            Subject(
                kind: kind,
                target: channel == .background
                    ? .recommendations : ruleSet.target(ofKind: kind) ?? .timeline)
        }
        var budget = PushBudget(terms.budget, now: first.event.at)
        var waiting: (kinds: Set<String>, urgency: Urgency, until: Int64)?
        func ask(_ kinds: Set<String>, _ urgency: Urgency, now: Int64) -> Int64? {
            let stale = kinds.map {
                PushBudget.Kind(hash($0), interval: terms.intervals[$0] ?? terms.interval)
            }
            if case .withhold(let until) = budget.ask(
                channel, stale: stale, urgency: urgency, now: now)
            {
                return until
            }
            return nil
        }
        var place = 0
        while place < told.count {
            let event = told[place].event
            // What the budget has back by then goes out first.
            if let held = waiting, held.until <= event.at {
                waiting = ask(held.kinds, held.urgency, now: held.until).map {
                    (held.kinds, held.urgency, $0)
                }
                if waiting == nil {
                    for kind in held.kinds { figures[target(kind), default: Figures()].pushes += 1 }
                }
                continue
            }
            // One change of several kinds is one push.
            var kinds: Set<String> = []
            while place < told.count, told[place].event.sequence == event.sequence {
                kinds.insert(told[place].kind)
                place += 1
            }
            let all = kinds.union(waiting?.kinds ?? [])
            let urgency =
                (waiting?.urgency.rank ?? 0) > event.urgency.rank
                ? waiting?.urgency ?? event.urgency : event.urgency
            if let until = ask(all, urgency, now: event.at) {
                waiting = (all, urgency, until)
                for kind in kinds { figures[target(kind), default: Figures()].withheld += 1 }
            } else {
                waiting = nil
                for kind in all { figures[target(kind), default: Figures()].pushes += 1 }
            }
        }
        for kind in waiting?.kinds ?? [] { figures[target(kind), default: Figures()].pushes += 1 }
    }
}
