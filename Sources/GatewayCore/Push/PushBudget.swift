import WidgetModel

/// The push budget of one device, or of one broadcast channel.
///
/// A push of type `widgets` reloads every widget of the app on the device and spends from
/// WidgetKit's budgets. Therefore such pushes are limited, and a kind causes no other push before
/// its minimum interval has passed. Withheld content is not stored here. It stays stale, and the
/// next push includes it: at the time that this returns, or earlier for another reason.
package struct PushBudget: Sendable {
    /// An account that pushes are counted to, with a limit of its own.
    package enum Account: String, Sendable, CaseIterable {
        case widgets, controls, background
        /// Pushes for Live Activities with priority 10, which Apple's budget counts.
        case activities
        /// Pushes for Live Activities with priority 5.
        case quietActivities

        /// The default limit. Apple publishes none.
        fileprivate var standard: PushAllowance.Terms {
            switch self {
            case .widgets, .controls: .init(perDay: 48, burst: 9, reserve: 4)
            case .background: .init(perDay: 24, burst: 3, reserve: 1)
            case .activities: .init(perDay: 240, burst: 10, reserve: 4)
            case .quietActivities: .init(perDay: 1_440, burst: 30, reserve: 0)
            }
        }
    }

    /// The limits of the accounts.
    package struct Terms: Sendable, Hashable {
        private var stated: [Account: PushAllowance.Terms] = [:]

        package init() {}

        package subscript(account: Account) -> PushAllowance.Terms {
            get { stated[account] ?? account.standard }
            set { stated[account] = newValue }
        }
    }

    /// A kind that is stale, or was pushed.
    package struct Kind: Sendable, Hashable {
        /// A hash of its name, stable across restarts.
        package let id: UInt64
        /// The shortest interval between two pushes for it, ms; at most a day.
        package let interval: Int64

        /// The default interval for a kind whose catalog states none, ms.
        package static let intervalDefault: Int64 = 300_000

        package init(_ id: UInt64, interval: Int64 = intervalDefault) {
            self.id = id
            self.interval = min(max(interval, 0), TimeAway.longest)
        }
    }

    /// The decision about a push.
    package enum Verdict: Sendable, Hashable {
        /// Push now; it was counted to this account.
        case push(from: Account)
        /// Do not push before this time on the caller's monotonic clock, ms. If nothing is pushed
        /// until then, content of the same urgency may be pushed then.
        case withhold(until: Int64)
    }

    /// The maximum number of kinds with a stored last push. Beyond it the oldest is removed, and
    /// may be pushed sooner; a registration has fewer widgets.
    package static let kindsMax = 256

    private var terms: Terms
    /// The accounts that pushes were counted to; the others are full.
    private var allowances: [Account: PushAllowance] = [:]
    /// The kinds that were pushed within a day, with the times.
    private var pushed: [(kind: UInt64, at: Int64)] = []

    package init(_ terms: Terms) {
        self.terms = terms
    }

    /// Requests a push for all stale content of a type, and counts it if it is allowed.
    ///
    /// - Parameters:
    ///   - isStart: Whether the push starts a Live Activity.
    ///   - stale: The stale kinds, for timelines; for other types, and when empty, only the
    ///     number of pushes decides.
    ///   - urgency: The highest urgency of the stale content.
    package mutating func ask(
        _ type: APNsPushType, isStart: Bool = false, stale: [Kind], urgency: Urgency, now: Int64
    ) -> Verdict {
        pushed.removeAll { now.elapsed(since: $0.at) >= TimeAway.longest }
        let turn = turn(type, isStart: isStart, stale: stale, urgency: urgency, now: now)
        guard turn.due <= now else { return .withhold(until: turn.due) }
        spend(turn.account, pushed: stale, now: now)
        return .push(from: turn.account)
    }

    /// Returns the reason and the time until which a push is withheld; `nil` when it is allowed.
    /// The parameters are those of ``ask(_:isStart:stale:urgency:now:)``; nothing is counted.
    package func hold(
        _ type: APNsPushType, isStart: Bool = false, stale: [Kind], urgency: Urgency, now: Int64
    ) -> (until: Int64, isInterval: Bool)? {
        let turn = turn(type, isStart: isStart, stale: stale, urgency: urgency, now: now)
        return turn.due > now ? (turn.due, turn.isInterval) : nil
    }

    /// Returns the account of a push and the earliest time at which it may be sent: from the
    /// preferred account unless the other one allows it earlier.
    private func turn(
        _ type: APNsPushType, isStart: Bool, stale: [Kind], urgency: Urgency, now: Int64
    ) -> (account: Account, due: Int64, isInterval: Bool) {
        let (preferred, other) = type.accounts(urgency, isStart: isStart)
        var account = preferred
        var allowed = allowance(preferred, now: now).due(urgency, now: now)
        if let other {
            let due = allowance(other, now: now).due(urgency, now: now)
            if due < allowed { (account, allowed) = (other, due) }
        }
        let first = type == .widgets ? stale.map(firstPush).min() ?? now : now
        return (account, max(first, allowed), first > allowed)
    }

    private func allowance(_ account: Account, now: Int64) -> PushAllowance {
        allowances[account] ?? PushAllowance(terms[account], now: now)
    }

    private mutating func spend(_ account: Account, pushed kinds: [Kind], now: Int64) {
        var allowance = allowance(account, now: now)
        allowance.spend(now: now)
        allowances[account] = allowance
        if account == .widgets { note(kinds, now: now) }
    }

    /// Counts a push that is sent regardless of the budget, because a person requested it.
    package mutating func count(_ type: APNsPushType, pushed kinds: [Kind], now: Int64) {
        spend(type.accounts().preferred, pushed: kinds, now: now)
    }

    /// Returns the times at which kinds were last pushed, within the last day.
    package func lastPushes(of kinds: [Kind]) -> [LastPush] {
        kinds.map { kind in
            LastPush(kind: kind.id, at: pushed.first { $0.kind == kind.id }?.at)
        }
    }

    /// The time at which a kind was last pushed; `nil` if not within the last day.
    package typealias LastPush = (kind: UInt64, at: Int64?)

    /// Reverts a counted push that failed.
    ///
    /// - Parameters:
    ///   - before: When its kinds were pushed before. These times are restored, so that no kind
    ///     waits for the failed push's interval.
    ///   - isCounted: Whether it stays counted, because it may have arrived nevertheless.
    package mutating func giveBack(
        _ account: Account, before: [LastPush], isCounted: Bool, now: Int64
    ) {
        for (kind, at) in before {
            pushed.removeAll { $0.kind == kind }
            if let at { pushed.append((kind, at)) }
        }
        if !isCounted { allowances[account]?.giveBack(now: now) }
    }

    /// Adopts other limits; the spent share stays spent.
    package mutating func adopt(_ terms: Terms, now: Int64) {
        guard terms != self.terms else { return }
        self.terms = terms
        for account in Account.allCases { allowances[account]?.adopt(terms[account], now: now) }
    }

    /// Returns the saved pushes of a type.
    package func savings(_ type: APNsPushType, now: Int64) -> PushAllowance.Savings {
        allowance(type.accounts().preferred, now: now).savings(now: now)
    }

    /// Returns the earliest time at which a kind may cause a push.
    private func firstPush(for kind: Kind) -> Int64 {
        pushed.first { $0.kind == kind.id }?.at.later(by: kind.interval) ?? .min
    }

    /// Records a push of everything stale, whichever kind caused it.
    private mutating func note(_ stale: [Kind], now: Int64) {
        for kind in stale {
            pushed.removeAll { $0.kind == kind.id }
            pushed.append((kind.id, now))
        }
        pushed.removeFirst(max(0, pushed.count - Self.kindsMax))
    }
}

extension PushBudget {
    /// Writes the budget in stored form, relative to the wall clock, because monotonic clocks
    /// restart. An account without a credit is full.
    func save(to text: inout SavedText, now: Int64, wall: Int64) {
        text.number("savedAt", wall)
        // Older versions require the first three.
        for (place, account) in Account.allCases.enumerated()
        where place < 3 || allowances[account] != nil {
            text.number(account.rawValue, allowance(account, now: now).credit(now: now))
        }
        text.list("pushed", pushed) { text, push in
            text.bits("kind", push.kind)
            text.number("age", now.elapsed(since: push.at))
        }
    }

    /// Restores a stored budget with the refill since. At most a day of the elapsed wall-clock time
    /// counts, and none if the clock was set back.
    ///
    /// - Throws: ``UnreadableState``.
    init(_ value: JSONValue, _ terms: Terms, now: Int64, wall: Int64) throws {
        let saved = try SavedMembers(value)
        let savedAt = now.later(by: -TimeAway.between(try saved.number("savedAt"), wall))
        self.terms = terms
        // Older versions did not have all accounts.
        for account in Account.allCases where saved[account.rawValue] != nil {
            let credit = try saved.number(account.rawValue)
            guard credit < terms[account].creditMax else { continue }
            allowances[account] = PushAllowance(terms[account], credit: credit, now: savedAt)
        }
        pushed = try saved.list("pushed").suffix(Self.kindsMax).map { value in
            let saved = try SavedMembers(value)
            let age = min(max(try saved.number("age"), 0), TimeAway.longest)
            return (kind: try saved.bits("kind"), at: savedAt.later(by: -age))
        }
    }
}

extension APNsPushType {
    /// The account that a push is counted to, and the one that it may be counted to instead.
    fileprivate func accounts(
        _ urgency: Urgency = .high, isStart: Bool = false
    ) -> (preferred: PushBudget.Account, other: PushBudget.Account?) {
        switch self {
        case .widgets: (.widgets, nil)
        case .controls: (.controls, nil)
        case .background: (.background, nil)
        case .liveactivity where isStart: (.activities, nil)
        case .liveactivity where urgency == .low || urgency == .veryLow: (.quietActivities, nil)
        case .liveactivity: (.activities, .quietActivities)
        }
    }
}
