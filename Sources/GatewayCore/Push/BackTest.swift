import WidgetModel

/// Estimates the effect of a catalog on past changes: reloads and pushes, kind by kind.
///
/// The changes are decided and collapsed as in live operation; then every client is compared with
/// the resulting notifications. Pushes are counted as if no client had a stream and none
/// acknowledged anything, which is the maximum.
package struct BackTest: Sendable {
    /// The unit of the statistics.
    package struct Subject: Sendable, Hashable {
        /// The widget or control kind.
        package let kind: String
        /// The content of the kind that becomes stale.
        package let target: Target
    }

    /// The statistics of one subject.
    package struct Stats: Sendable, Equatable {
        /// The number of changes that hit it.
        package var changes = 0
        /// The number of notifications to its subscribers, counting each subscriber.
        package var reloads = 0
        /// The number of pushes to devices and webhooks that it is a reason for.
        package var pushes = 0
        /// The number of notifications withheld by a budget or the interval between pushes.
        package var withheld = 0
        /// The number of subscriptions.
        package var holders = 0
    }

    /// A notification of a key.
    private struct Event: Sendable {
        let sequence: UInt64
        let at: Int64
        let urgency: Urgency
    }

    private struct ClientNotification {
        let event: Event
        let subject: Subject
    }

    /// The maximum number of stored notifications, 32 bytes each, at which the replay ends.
    package static let eventsMax = 4_000_000
    private static let unionsMax = 100_000

    /// The statistics so far.
    package private(set) var figures: [Subject: Stats] = [:]
    /// The number of changes that hit no rule.
    package private(set) var unmatched = 0
    /// The number of changes that hit a rule because they lack an attribute.
    package private(set) var broad = 0
    /// The number of changes that the catalog would have rejected.
    package private(set) var refused = 0

    private let ruleSet: RuleSet
    private let limits: Limits
    private let terms: PushScheduler.Terms
    private let hash: SipHash
    private var events: [UInt64: [Event]] = [:]
    private var eventCount = 0
    private var broadSlots: Set<Int> = []
    private var windows = CollapseWindow(keysMax: CoreLimits().collapseKeysMax)
    private var urgencies: [UInt64: Urgency] = [:]
    private var unions: [[UInt64]: Int] = [:]
    /// The time of the last replayed change.
    private var last = Int64.min

    package init(_ ruleSet: RuleSet, limits: Limits, terms: PushScheduler.Terms, hash: SipHash) {
        self.ruleSet = ruleSet
        self.limits = limits
        self.terms = terms
        self.hash = hash
    }

    /// Whether no more changes can be replayed.
    package var isFull: Bool { eventCount >= Self.eventsMax }

    // MARK: Changes

    /// Replays a change at a time in ms since 1970; call it in the order of the log.
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
            if hit.insert(subject).inserted { figures[subject, default: Stats()].changes += 1 }
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

    /// Ends the replay of changes.
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

    package mutating func count(_ record: ClientRecord) {
        var pushed: [APNsPushType: [ClientNotification]] = [:]
        ruleSet.visitItems(of: record.registration) { item, rules, parameters in
            let subject = Subject(
                kind: item.kind, target: item.isSet ? .recommendations : rules.target)
            let keys = keys(of: item, rules, parameters, record)
            figures[subject, default: Stats()].holders += 1
            guard !keys.isEmpty else { return }
            let reloads = union(keys)
            figures[subject, default: Stats()].reloads += reloads
            let channel = item.pushChannel(in: record.registration)
            if channel == .webhook { figures[subject, default: Stats()].pushes += reloads }
            if let type = channel?.budgeted { add(keys, subject, to: &pushed[type, default: []]) }
        }
        guard !pushed.isEmpty else { return }
        for (channel, told) in pushed { push(told, channel) }
    }

    /// Returns the keys of a subscription that were notified.
    private func keys(
        of item: Subscription, _ rules: KindRules, _ parameters: [[String: ParameterValue]],
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

    /// Returns the number of notifications of several keys, counting those of the same change once.
    private mutating func union(_ keys: [UInt64]) -> Int {
        if keys.count == 1 { return events[keys[0]]?.count ?? 0 }
        if let known = unions[keys] { return known }
        let count = Set(keys.flatMap { events[$0] ?? [] }.map(\.sequence)).count
        if unions.count < Self.unionsMax { unions[keys] = count }
        return count
    }

    private func add(_ keys: [UInt64], _ subject: Subject, to told: inout [ClientNotification]) {
        for key in keys {
            told += (events[key] ?? []).map { ClientNotification(event: $0, subject: subject) }
        }
    }

    /// Lets a device's budget decide about the notifications for it, in order of time.
    private mutating func push(_ told: [ClientNotification], _ channel: APNsPushType) {
        let told = told.sorted {
            ($0.event.at, $0.event.sequence) < ($1.event.at, $1.event.sequence)
        }
        var budget = PushBudget(terms.budget)
        var waiting: (subjects: Set<Subject>, urgency: Urgency, until: Int64)?
        func ask(_ subjects: Set<Subject>, _ urgency: Urgency, now: Int64) -> Int64? {
            let stale = Set(subjects.map(\.kind)).map {
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
            // Withheld notifications that the budget allows by then go out first.
            if let held = waiting, held.until <= event.at {
                waiting = ask(held.subjects, held.urgency, now: held.until).map {
                    (held.subjects, held.urgency, $0)
                }
                if waiting == nil {
                    for subject in held.subjects { figures[subject, default: Stats()].pushes += 1 }
                }
                continue
            }
            // A change of several subjects is a single push.
            var subjects: Set<Subject> = []
            while place < told.count, told[place].event.sequence == event.sequence {
                subjects.insert(told[place].subject)
                place += 1
            }
            let all = subjects.union(waiting?.subjects ?? [])
            let urgency =
                (waiting?.urgency.rank ?? 0) > event.urgency.rank
                ? waiting?.urgency ?? event.urgency : event.urgency
            if let until = ask(all, urgency, now: event.at) {
                waiting = (all, urgency, until)
                for subject in subjects { figures[subject, default: Stats()].withheld += 1 }
            } else {
                waiting = nil
                for subject in all { figures[subject, default: Stats()].pushes += 1 }
            }
        }
        for subject in waiting?.subjects ?? [] { figures[subject, default: Stats()].pushes += 1 }
    }
}
