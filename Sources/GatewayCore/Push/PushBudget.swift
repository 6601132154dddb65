import WidgetModel

/// How often one device may be pushed to.
///
/// A push of type `widgets` reloads every widget of the app on the device and spends from the
/// budgets WidgetKit keeps for them, so they are few, and no kind is the reason for one again
/// before its minimum interval is over. What is withheld is not kept here: it stays stale, and
/// whoever asks again for what is stale gets it out at the moment this says, or with whatever is
/// pushed before.
package struct PushBudget: Sendable {
    /// The types of push that are counted, each by itself.
    package enum Channel: Sendable, Hashable, CaseIterable {
        /// Timelines of every kind.
        case widgets
        /// A control.
        case controls
        /// A recommendation set, by waking the app.
        case background
    }

    /// What is allowed.
    package struct Terms: Sendable, Hashable {
        /// Pushes for timelines.
        package var widgets = PushAllowance.Terms(perDay: 48, burst: 9, reserve: 4)
        /// Pushes for controls.
        package var controls = PushAllowance.Terms(perDay: 48, burst: 9, reserve: 4)
        /// Pushes that wake the app.
        package var background = PushAllowance.Terms(perDay: 24, burst: 3, reserve: 1)

        /// The defaults.
        package init() {}
    }

    /// A kind that is stale, or was pushed for.
    package struct Kind: Sendable, Hashable {
        /// A hash of its name, equal after a restart.
        package let id: UInt64
        /// The least time between two pushes for it, in milliseconds; at most a day counts.
        package let interval: Int64

        /// The interval of a kind whose catalog names none, in milliseconds.
        package static let intervalDefault: Int64 = 300_000

        /// A kind.
        package init(_ id: UInt64, interval: Int64 = intervalDefault) {
            self.id = id
            self.interval = min(max(interval, 0), TimeAway.longest)
        }
    }

    /// Whether a push may go out.
    package enum Verdict: Sendable, Hashable {
        /// Now; it was counted.
        case push
        /// Not before that moment of the caller's monotonic milliseconds. If nothing is pushed
        /// until then, something as urgent may then.
        case withhold(until: Int64)
    }

    /// Kinds whose last push is remembered. Beyond it the oldest is forgotten, and may be pushed
    /// for sooner; a registration has fewer widgets.
    package static let kindsMax = 256

    private var widgets: PushAllowance
    private var controls: PushAllowance
    private var background: PushAllowance
    /// Kinds that were pushed for within a day, and when.
    private var pushed: [(kind: UInt64, at: Int64)] = []

    /// Nothing was pushed yet.
    package init(_ terms: Terms, now: Int64) {
        widgets = PushAllowance(terms.widgets, now: now)
        controls = PushAllowance(terms.controls, now: now)
        background = PushAllowance(terms.background, now: now)
    }

    /// Asks for a push for everything that is stale on a channel, and counts it if it may go out.
    ///
    /// - Parameters:
    ///   - stale: The kinds that are stale, for timelines; on other channels, and when empty, only
    ///     the count decides.
    ///   - urgency: The highest of what is stale.
    package mutating func ask(
        _ channel: Channel, stale: [Kind], urgency: Urgency, now: Int64
    ) -> Verdict {
        pushed.removeAll { now.elapsed(since: $0.at) >= TimeAway.longest }
        if let hold = hold(channel, stale: stale, urgency: urgency, now: now) {
            return .withhold(until: hold.until)
        }
        switch channel {
        case .controls: controls.spend(now: now)
        case .background: background.spend(now: now)
        case .widgets:
            widgets.spend(now: now)
            note(stale, now: now)
        }
        return .push
    }

    /// Why a push may not go out now, and until when; `nil` when it may. Parameters are those of
    /// ``ask(_:stale:urgency:now:)``, and nothing is counted.
    package func hold(
        _ channel: Channel, stale: [Kind], urgency: Urgency, now: Int64
    ) -> (until: Int64, isInterval: Bool)? {
        let allowed: Int64
        var first = now
        switch channel {
        case .controls: allowed = controls.due(urgency, now: now)
        case .background: allowed = background.due(urgency, now: now)
        case .widgets:
            allowed = widgets.due(urgency, now: now)
            first = stale.map(firstPush).min() ?? now
        }
        let due = max(first, allowed)
        return due > now ? (due, first > allowed) : nil
    }

    /// Counts a push that goes out whatever is left: a person asked for it.
    package mutating func count(_ channel: Channel, pushed kinds: [Kind], now: Int64) {
        switch channel {
        case .widgets:
            widgets.spend(now: now)
            note(kinds, now: now)
        case .controls: controls.spend(now: now)
        case .background: background.spend(now: now)
        }
    }

    /// When kinds were last pushed for, of those that were within a day.
    package func lastPushes(of kinds: [Kind]) -> [LastPush] {
        kinds.map { kind in
            LastPush(kind: kind.id, at: pushed.first { $0.kind == kind.id }?.at)
        }
    }

    /// When a kind was last pushed for; `nil` for not within a day.
    package typealias LastPush = (kind: UInt64, at: Int64?)

    /// A push that was counted came to nothing.
    ///
    /// - Parameters:
    ///   - before: When its kinds had been pushed for before it, as they have again: none of them
    ///     waits for this one's interval.
    ///   - isCounted: It may have arrived all the same, and stays counted.
    package mutating func giveBack(
        _ channel: Channel, before: [LastPush], isCounted: Bool, now: Int64
    ) {
        for (kind, at) in before {
            pushed.removeAll { $0.kind == kind }
            if let at { pushed.append((kind, at)) }
        }
        guard !isCounted else { return }
        switch channel {
        case .widgets: widgets.giveBack(now: now)
        case .controls: controls.giveBack(now: now)
        case .background: background.giveBack(now: now)
        }
    }

    /// Goes by other terms from now on; the share that was spent stays spent.
    package mutating func adopt(_ terms: Terms, now: Int64) {
        widgets.adopt(terms.widgets, now: now)
        controls.adopt(terms.controls, now: now)
        background.adopt(terms.background, now: now)
    }

    /// When a kind may be the reason for a push.
    private func firstPush(for kind: Kind) -> Int64 {
        pushed.first { $0.kind == kind.id }?.at.later(by: kind.interval) ?? .min
    }

    /// All that was stale was pushed for, whichever of it was the reason.
    private mutating func note(_ stale: [Kind], now: Int64) {
        for kind in stale {
            pushed.removeAll { $0.kind == kind.id }
            pushed.append((kind.id, now))
        }
        pushed.removeFirst(max(0, pushed.count - Self.kindsMax))
    }
}

extension PushBudget {
    /// A budget as it is persisted: by a moment of the wall clock, as monotonic clocks start anew.
    package struct Saved: Sendable, Hashable {
        /// When, in milliseconds since 1970.
        package var savedAt: Int64
        /// Credit for timelines.
        package var widgets: Int64
        /// Credit for controls.
        package var controls: Int64
        /// Credit for waking the app.
        package var background: Int64
        /// Kinds that were pushed for, the one longest ago first.
        package var pushed: [PushedKind]

        /// A kind that was pushed for.
        package struct PushedKind: Sendable, Hashable {
            /// A hash of its name.
            package var kind: UInt64
            /// How long ago, in milliseconds.
            package var age: Int64

            /// A kind that was pushed for.
            package init(kind: UInt64, age: Int64) {
                self.kind = kind
                self.age = age
            }
        }

        /// What was persisted.
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

    /// The budget to be persisted.
    package func saved(now: Int64, wall: Int64) -> Saved {
        Saved(
            savedAt: wall, widgets: widgets.credit(now: now), controls: controls.credit(now: now),
            background: background.credit(now: now),
            pushed: pushed.map { .init(kind: $0.kind, age: now.elapsed(since: $0.at)) })
    }

    /// The budget that was persisted, with what came back since; of the wall clock no more than a
    /// day is believed, and nothing when it went back.
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
