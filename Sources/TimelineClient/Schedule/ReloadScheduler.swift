import Foundation

/// Decides when placed widgets are asked for their next timeline. Owns no task, timer or clock:
/// requests and the time go in, reloads that are due come out, and equal inputs give equal answers.
///
/// The rules, in the order of their weight:
/// - A widget has one reload under way at a time. All requests made before it starts are served by
///   it; any made while it runs are served by exactly one more.
/// - Interaction and system changes are reloaded for at once, and count towards no budget; a
///   reload that serves one of them with others counts neither. See ``ReloadReason/isExempt``.
/// - Other reloads keep the minimum interval to the last one of that widget, whatever that was
///   for, and count, unless the app is active: see ``activity``.
/// - A reload for the policy comes no earlier than the policy's date plus jitter.
/// - Reloads of several widgets that become due within ``Settings/batchWindow`` run together.
/// - What is withheld stays owed, and is due as soon as the rules allow it.
///
/// Placed widgets that are configured alike are equal, so they are counted, not told apart, and
/// reloaded together. Each has a budget of its own, and one reload spends from all of them; it has
/// to wait until each allows it. That is the one placed first, for it has spent all that the others
/// have: so the budget kept here is that one's, and where some are removed, the last placed are
/// taken to be gone.
///
/// `now` is wall time, for that is what timelines are dated in. When the clock goes back, whatever
/// it now places in the future (the last reload, a request, a failure, a spent reload) counts as of
/// now: intervals, retries and budgets last no longer than they would have from then on. When it
/// goes forth, they end early. A policy's date is a date and stays where it is: after the clock was
/// set, timelines may be dated wrongly, and it is on the caller to ask with
/// ``ReloadReason/SystemChange/time``, as systems do. After any jump `nextDue` has to be read again.
public struct ReloadScheduler: Sendable, Equatable {
    /// Waits and bounds. Waits are in seconds; a negative one, or one that is not a number, counts
    /// as 0, one longer than 366 days as these.
    public struct Settings: Sendable, Equatable {
        /// From a reload's start to the next for the policy at least. WidgetKit has such a minimum
        /// too, but does not publish it; five minutes are what it asks between entries.
        public var policyIntervalMin: TimeInterval = 300
        /// From a reload's start to the next for a notification or the app at least. With 0 they
        /// are reloaded for as soon as they come, within the budget.
        public var requestIntervalMin: TimeInterval = 300
        /// Longest jitter after a policy's date, for one date on many devices is a load spike on
        /// the server (Apple, Keeping a widget up to date). No more than a tenth of the wait for
        /// that date: what is wanted soon does not come much later.
        public var policyJitterMax: TimeInterval = 60
        /// A due reload waits this long for others that are known to become due, so that they run
        /// together. Exempt ones do not wait.
        public var batchWindow: TimeInterval = 10
        /// Reloads that count, per placed widget in any 24 hours; `nil` for no budget, as under a
        /// debugger. See ``ReloadBudget/defaultLimit``.
        public var budgetLimit: Int? = ReloadBudget.defaultLimit

        /// The defaults.
        public init() {}
    }

    /// A reload that is due, and under way until its end is reported.
    public struct Reload: Sendable, Equatable {
        /// The widget to build for.
        public let widget: WidgetInfo
        /// All that it serves; never empty.
        public let reasons: Set<ReloadReason>
        /// The budgets it spent from: one for each widget placed like this, or 0 when it is free.
        public let budgetsSpent: Int
        /// Tells it from another reload of the same widget, before that was removed and placed
        /// again.
        let number: UInt64
    }

    /// What is known of one placed widget.
    struct Record: Sendable, Equatable {
        /// How often it is placed.
        var count = 1
        /// That of the one placed first.
        var budget: ReloadBudget
        /// Start of the last reload, failed ones included.
        var lastReload: Date?
        /// The reload under way.
        var running: UInt64?
        /// What was asked since the last reload started.
        var requests: Set<ReloadReason> = []
        /// When the first of `requests` was made.
        var requestedAt = Date.distantPast
        var policy: Policy?
        var retry: Retry?

        var hasExemptRequest: Bool { requests.contains(where: \.isExempt) }
    }

    /// What the timeline's policy asks.
    struct Policy: Sendable, Equatable {
        var date: Date
        /// Seconds after everything the policy has to wait for, but a budget.
        var jitter: TimeInterval
    }

    /// What a failed reload did not serve.
    struct Retry: Sendable, Equatable {
        var reasons: Set<ReloadReason>
        var failedAt: Date
        var wait: TimeInterval
        /// It has spent already what the next try would.
        var isPaid = false
    }

    /// Waits and bounds.
    public let settings: Settings
    /// What the app does at the moment. While it is active nothing counts that starts; the minimum
    /// intervals hold. What only the budget withheld is due as soon as the app becomes active.
    public var activity: AppActivity = []
    /// Widgets that cannot be built at the moment, for reasons that are not of time: none of them
    /// is due. What they are owed stays owed, and is due as soon as they are left out here.
    public var withheld: Set<WidgetInfo> = []

    var records: [WidgetInfo: Record] = [:]
    /// Every key of `records`, so that equal inputs give equal answers.
    private var order: [WidgetInfo] = []
    private var reloads: UInt64 = 0
    private var now = Date.distantPast

    /// A scheduler of no widgets.
    public init(settings: Settings = Settings()) {
        self.settings = settings
    }

    /// Takes what people have placed now, as a whole. Widgets configured alike stand in the list as
    /// often as they are placed. What is new has its own, full budget, and is not due before it is
    /// asked for; what is gone is forgotten, with all that it was owed.
    public mutating func place(_ widgets: [WidgetInfo]) {
        var counts: [WidgetInfo: Int] = [:]
        order = widgets.filter { info in
            counts[info, default: 0] += 1
            return counts[info] == 1
        }
        records = counts.reduce(into: [:]) { placed, widget in
            var record =
                records[widget.key]
                ?? Record(budget: ReloadBudget(limit: settings.budgetLimit ?? .max))
            record.count = widget.value
            placed[widget.key] = record
        }
    }

    /// Takes up what an archive kept of a placed widget: its budget, and when its timeline's policy
    /// asks. The last reload that counted is taken for the last of all. A widget that is not placed
    /// is ignored.
    public mutating func resume(
        _ widget: WidgetInfo, budget: ReloadBudget, reloadDate: Date?, now: Date,
        using generator: inout some RandomNumberGenerator
    ) {
        clockStands(at: now)
        guard var record = records[widget] else { return }
        record.budget = ReloadBudget(dates: budget.dates, limit: record.budget.limit)
        record.budget.clockStands(at: now)
        record.lastReload = record.budget.dates.last
        record.policy = policy(reloadDate, record, using: &generator)
        records[widget] = record
    }

    /// Asks for a reload. Does nothing when the widget is not placed; asking again for what is
    /// owed already adds nothing.
    public mutating func request(_ widget: WidgetInfo, _ reason: ReloadReason, now: Date) {
        clockStands(at: now)
        guard var record = records[widget] else { return }
        if record.requests.isEmpty { record.requestedAt = now }
        record.requests.insert(reason)
        records[widget] = record
    }

    /// Starts what is due. Each reload is under way, and its widget not due again, until
    /// ``finished(_:reloadDate:now:using:)``, ``failed(_:retryAfter:now:)`` or
    /// ``interrupted(_:now:)`` is called for it.
    ///
    /// - Parameter limit: How many may start; the others stay owed, due again at once or, where some
    ///   are about to be, with the next batch.
    /// - Returns: At most one for each widget: exempt ones first, then those that are due longest.
    public mutating func due(now: Date, limit: Int = .max) -> [Reload] {
        clockStands(at: now)
        guard let nextDue, nextDue <= now else { return [] }
        var queue: [(isExempt: Bool, due: Date, place: Int)] = []
        for (place, widget) in order.enumerated() {
            guard !withheld.contains(widget), let record = records[widget],
                let due = dueDate(of: record), due <= now
            else { continue }
            queue.append((record.hasExemptRequest, due, place))
        }
        queue.sort {
            ($0.isExempt ? 0 : 1, $0.due, $0.place) < ($1.isExempt ? 0 : 1, $1.due, $1.place)
        }
        return queue.prefix(max(limit, 0)).compactMap { start(order[$0.place]) }
    }

    /// A provider answered; the policy of its timeline replaces the one before.
    ///
    /// Does nothing when the widget was removed meanwhile.
    ///
    /// - Parameters:
    ///   - reloadDate: See ``AnyTimeline/reloadDate``; one that is not finite counts as never.
    ///   - generator: Draws the jitter.
    public mutating func finished(
        _ reload: Reload, reloadDate: Date?, now: Date,
        using generator: inout some RandomNumberGenerator
    ) {
        clockStands(at: now)
        guard var record = records[reload.widget], record.running == reload.number else { return }
        record.running = nil
        record.policy = policy(reloadDate, record, using: &generator)
        records[reload.widget] = record
    }

    /// A provider failed. What the reload served stays owed and is tried again after `wait`
    /// seconds, or sooner with a request that may run sooner. The try counts like the one before;
    /// the minimum intervals do not hold for it, `wait` is there in their place.
    ///
    /// Does nothing when the widget was removed meanwhile.
    public mutating func failed(_ reload: Reload, retryAfter wait: TimeInterval, now: Date) {
        clockStands(at: now)
        guard var record = records[reload.widget], record.running == reload.number else { return }
        record.running = nil
        record.retry = Retry(reasons: reload.reasons, failedAt: now, wait: wait.asWait)
        records[reload.widget] = record
    }

    /// A reload ended without a word of its provider, which is none of its faults. What it served
    /// stays owed and is due at once; the next one that serves it, and whatever else was asked
    /// meanwhile, spends nothing: it was spent for when this one started.
    ///
    /// Does nothing when the widget was removed meanwhile.
    public mutating func interrupted(_ reload: Reload, now: Date) {
        clockStands(at: now)
        guard var record = records[reload.widget], record.running == reload.number else { return }
        record.running = nil
        record.retry = Retry(reasons: reload.reasons, failedAt: now, wait: 0, isPaid: true)
        records[reload.widget] = record
    }

    /// When the next reload of a widget is due, other widgets aside; `nil` for never, while it is
    /// withheld, and while one is under way. As long as nothing else is called it runs then, or with
    /// a batch up to ``Settings/batchWindow`` later.
    public func dueDate(of widget: WidgetInfo) -> Date? {
        withheld.contains(widget) ? nil : records[widget].flatMap(dueDate)
    }

    /// Whether a reload for this reason is owed that has not started.
    func isOwed(_ widget: WidgetInfo, _ reason: ReloadReason) -> Bool {
        guard let record = records[widget] else { return false }
        return record.requests.contains(reason) || record.retry?.reasons.contains(reason) ?? false
    }

    /// The budget of each widget placed like this; `nil` when none is. An archive keeps its
    /// ``ReloadBudget/json``.
    public func budget(of widget: WidgetInfo) -> ReloadBudget? {
        records[widget]?.budget
    }

    private mutating func start(_ widget: WidgetInfo) -> Reload? {
        guard var record = records[widget] else { return nil }
        var reasons = record.requests.union(record.retry?.reasons ?? [])
        if let policy = record.policy, policyDate(policy, record) <= now { reasons.insert(.policy) }
        let isFree =
            !counts || reasons.contains(where: \.isExempt) || record.retry?.isPaid ?? false
        if !isFree { record.budget.spend(now: now) }
        reloads &+= 1
        record.running = reloads
        record.lastReload = now
        record.requests = []
        record.retry = nil
        // A new timeline brings its own; one that fails is owed anyway.
        record.policy = nil
        records[widget] = record
        return Reload(
            widget: widget, reasons: reasons, budgetsSpent: isFree ? 0 : record.count,
            number: reloads)
    }

    private func policy(
        _ date: Date?, _ record: Record, using generator: inout some RandomNumberGenerator
    ) -> Policy? {
        guard let date, date.timeIntervalSinceReferenceDate.isFinite else { return nil }
        let wait = max(0, policyDate(Policy(date: date, jitter: 0), record).timeIntervalSince(now))
        let jitterMax = min(settings.policyJitterMax.asWait, wait / 10)
        return Policy(date: date, jitter: Double.random(in: 0...jitterMax, using: &generator))
    }

    private mutating func clockStands(at now: Date) {
        if now < self.now {
            for widget in order { records[widget]?.clockWentBack(to: now) }
        }
        self.now = now
    }
}

extension ReloadScheduler.Record {
    fileprivate mutating func clockWentBack(to now: Date) {
        budget.clockStands(at: now)
        lastReload = lastReload.map { min($0, now) }
        requestedAt = min(requestedAt, now)
        if let failedAt = retry?.failedAt { retry?.failedAt = min(failedAt, now) }
    }
}
