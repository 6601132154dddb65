import WidgetModel

/// The push budget of one device.
///
/// A push of type `widgets` reloads every widget of the app on the device and spends from
/// WidgetKit's budgets, so such pushes are limited, and a kind does not cause another one before
/// its minimum interval has passed. Withheld content is not stored here: it stays stale, and a
/// later request pushes it at the time that this returns, or together with an earlier push.
package struct PushBudget: Sendable {
    /// The push limits of one device.
    package struct Terms: Sendable, Hashable {
        /// The limit of pushes for timelines.
        package var widgets = PushAllowance.Terms(perDay: 48, burst: 9, reserve: 4)
        /// The limit of pushes for controls.
        package var controls = PushAllowance.Terms(perDay: 48, burst: 9, reserve: 4)
        /// The limit of pushes that wake the app.
        package var background = PushAllowance.Terms(perDay: 24, burst: 3, reserve: 1)

        package init() {}
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
        /// Push now; it was counted.
        case push
        /// Do not push before this time on the caller's monotonic clock, ms. If nothing is pushed
        /// until then, content of the same urgency may be pushed then.
        case withhold(until: Int64)
    }

    /// The maximum number of kinds with a stored last push. Beyond it the oldest is removed, and
    /// may be pushed sooner; a registration has fewer widgets.
    package static let kindsMax = 256

    private var widgets: PushAllowance
    private var controls: PushAllowance
    private var background: PushAllowance
    /// The kinds that were pushed within a day, with the times.
    private var pushed: [(kind: UInt64, at: Int64)] = []

    package init(_ terms: Terms, now: Int64) {
        widgets = PushAllowance(terms.widgets, now: now)
        controls = PushAllowance(terms.controls, now: now)
        background = PushAllowance(terms.background, now: now)
    }

    /// Requests a push for all stale content of a type, and counts it if it is allowed.
    ///
    /// - Parameters:
    ///   - stale: The stale kinds, for timelines; for other types, and when empty, only the
    ///     number of pushes decides.
    ///   - urgency: The highest urgency of the stale content.
    package mutating func ask(
        _ type: APNsPushType, stale: [Kind], urgency: Urgency, now: Int64
    ) -> Verdict {
        pushed.removeAll { now.elapsed(since: $0.at) >= TimeAway.longest }
        if let hold = hold(type, stale: stale, urgency: urgency, now: now) {
            return .withhold(until: hold.until)
        }
        switch type {
        case .controls: controls.spend(now: now)
        case .background: background.spend(now: now)
        case .widgets:
            widgets.spend(now: now)
            note(stale, now: now)
        }
        return .push
    }

    /// Returns the reason and the time until which a push is withheld; `nil` when it is allowed.
    /// The parameters are those of ``ask(_:stale:urgency:now:)``; nothing is counted.
    package func hold(
        _ type: APNsPushType, stale: [Kind], urgency: Urgency, now: Int64
    ) -> (until: Int64, isInterval: Bool)? {
        let allowed: Int64
        var first = now
        switch type {
        case .controls: allowed = controls.due(urgency, now: now)
        case .background: allowed = background.due(urgency, now: now)
        case .widgets:
            allowed = widgets.due(urgency, now: now)
            first = stale.map(firstPush).min() ?? now
        }
        let due = max(first, allowed)
        return due > now ? (due, first > allowed) : nil
    }

    /// Counts a push that is sent regardless of the budget, because a person requested it.
    package mutating func count(_ type: APNsPushType, pushed kinds: [Kind], now: Int64) {
        switch type {
        case .widgets:
            widgets.spend(now: now)
            note(kinds, now: now)
        case .controls: controls.spend(now: now)
        case .background: background.spend(now: now)
        }
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
    ///   - before: The previous times at which its kinds were pushed, which are restored, so that
    ///     none waits for the failed push's interval.
    ///   - isCounted: Whether it stays counted, because it may have arrived nevertheless.
    package mutating func giveBack(
        _ type: APNsPushType, before: [LastPush], isCounted: Bool, now: Int64
    ) {
        for (kind, at) in before {
            pushed.removeAll { $0.kind == kind }
            if let at { pushed.append((kind, at)) }
        }
        guard !isCounted else { return }
        switch type {
        case .widgets: widgets.giveBack(now: now)
        case .controls: controls.giveBack(now: now)
        case .background: background.giveBack(now: now)
        }
    }

    /// Adopts other limits; the spent share stays spent.
    package mutating func adopt(_ terms: Terms, now: Int64) {
        widgets.adopt(terms.widgets, now: now)
        controls.adopt(terms.controls, now: now)
        background.adopt(terms.background, now: now)
    }

    /// Returns the saved pushes of a type.
    package func savings(_ type: APNsPushType, now: Int64) -> PushAllowance.Savings {
        switch type {
        case .widgets: widgets.savings(now: now)
        case .controls: controls.savings(now: now)
        case .background: background.savings(now: now)
        }
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
    /// The persisted form of a budget, relative to the wall clock, because monotonic clocks
    /// restart.
    package struct Saved: Sendable, Hashable {
        /// The time of saving, ms since 1970.
        package var savedAt: Int64
        /// The credit for timelines.
        package var widgets: Int64
        /// The credit for controls.
        package var controls: Int64
        /// The credit for waking the app.
        package var background: Int64
        /// The kinds that were pushed, the oldest push first.
        package var pushed: [PushedKind]

        package struct PushedKind: Sendable, Hashable {
            /// A hash of its name.
            package var kind: UInt64
            /// The time since the push, ms.
            package var age: Int64

            package init(kind: UInt64, age: Int64) {
                self.kind = kind
                self.age = age
            }
        }

        package init(
            savedAt: Int64, widgets: Int64, controls: Int64, background: Int64,
            pushed: [PushedKind]
        ) {
            self.savedAt = savedAt
            self.widgets = widgets
            self.controls = controls
            self.background = background
            self.pushed = pushed
        }
    }

    /// Returns the budget in persisted form.
    package func saved(now: Int64, wall: Int64) -> Saved {
        Saved(
            savedAt: wall, widgets: widgets.credit(now: now), controls: controls.credit(now: now),
            background: background.credit(now: now),
            pushed: pushed.map { .init(kind: $0.kind, age: now.elapsed(since: $0.at)) })
    }

    /// Restores a persisted budget with the refill since. At most a day of the elapsed wall-clock
    /// time counts, and none if the clock was set back.
    package init(_ saved: Saved, _ terms: Terms, now: Int64, wall: Int64) {
        let savedAt = now.later(by: -TimeAway.between(saved.savedAt, wall))
        widgets = PushAllowance(terms.widgets, credit: saved.widgets, now: savedAt)
        controls = PushAllowance(terms.controls, credit: saved.controls, now: savedAt)
        background = PushAllowance(terms.background, credit: saved.background, now: savedAt)
        pushed = saved.pushed.suffix(Self.kindsMax).map {
            ($0.kind, savedAt.later(by: -min(max($0.age, 0), TimeAway.longest)))
        }
    }
}
