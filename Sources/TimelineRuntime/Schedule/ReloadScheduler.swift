import Foundation
import WidgetViews

/// Decides when placed widgets are asked for their next timeline. Owns no task, timer or clock:
/// requests and the time go in, due reloads come out, and equal inputs give equal results.
///
/// The rules, in order of precedence:
/// - A widget has at most one reload in progress. It serves all requests made before it started;
///   all requests made during it are served by exactly one more.
/// - Interactions and system changes cause a reload at once that counts towards no budget; neither
///   does a reload that serves one of them together with others. See ``ReloadReason/isExempt``.
/// - Other reloads keep the minimum interval after the widget's last reload, whatever its reason,
///   and count, unless the app is active: see ``activity``.
/// - A reload for the policy comes no earlier than the policy's date plus jitter.
/// - Reloads of several widgets that become due within ``Settings/batchWindow`` run together.
/// - A withheld reload stays owed, and is due as soon as the rules allow it.
///
/// Placed widgets with the same configuration are equal, so they are counted rather than
/// distinguished, and reloaded together. Each has its own budget, and a reload spends from all of
/// them, so it waits until each allows it. The budget of the widget placed first has spent
/// everything that the others have; therefore only that one is stored, and when some widgets are
/// removed, those placed last are assumed to be gone.
///
/// `now` is wall-clock time, because timelines are dated in it. When the clock is set back,
/// everything that is now in the future (the last reload, a request, a failure, a spent reload)
/// counts as of now: intervals, retries and budgets last no longer than if they started now. When
/// it is set forward, they end early. A policy's date is absolute and stays unchanged; since
/// timelines may be dated wrongly after the clock was set, the caller must request reloads with
/// ``ReloadReason/SystemChange/time``, as systems do. Read `nextDue` again after any jump.
package struct ReloadScheduler: Sendable, Equatable {
    /// The intervals and limits, in seconds. A negative value or NaN counts as 0, a value over 366
    /// days as 366 days.
    package struct Settings: Sendable, Equatable {
        /// The shortest time from the start of a reload to the next one for a policy. WidgetKit has
        /// such a minimum too, but does not publish it; it asks for five minutes between entries.
        package var policyIntervalMin: TimeInterval = 300
        /// The shortest time from the start of a reload to the next one for a notification or the
        /// app. 0 means that they are reloaded at once, within the budget.
        package var requestIntervalMin: TimeInterval = 300
        /// The longest jitter after a policy's date, because one date on many devices causes a load
        /// spike on the server (Apple, Keeping a widget up to date). At most a tenth of the wait
        /// for that date, so that a reload wanted soon is not much delayed.
        package var policyJitterMax: TimeInterval = 60
        /// The time that a due reload waits for others that are known to become due, so that they
        /// run together. Exempt reloads do not wait.
        package var batchWindow: TimeInterval = 10
        /// The number of counted reloads for each placed widget in any 24 hours; `nil` for no
        /// budget, as under a debugger. See ``ReloadBudget/defaultLimit``.
        package var budgetLimit: Int? = ReloadBudget.defaultLimit

        package init() {}
    }

    /// A reload that was due, and is in progress until its end is reported.
    package struct Reload: Sendable, Equatable {
        package let widget: WidgetInfo
        /// The reasons that the reload serves; never empty.
        package let reasons: Set<ReloadReason>
        /// The number of budgets that it spent from: one for each widget with this configuration,
        /// or 0 if it is free.
        package let budgetsSpent: Int
        /// Distinguishes it from a reload of the same widget before the widget was removed and
        /// placed again.
        let number: UInt64
    }

    struct Record: Sendable, Equatable {
        var count = 1
        /// The budget of the one that was placed first.
        var budget: ReloadBudget
        /// The start of the last reload, including failed ones.
        var lastReload: Date?
        var running: UInt64?
        var requests: Set<ReloadReason> = []
        var requestedAt = Date.distantPast
        var policy: Policy?
        var retry: Retry?

        var hasExemptRequest: Bool { requests.contains(where: \.isExempt) }
    }

    /// The reload that the timeline's policy asks for.
    struct Policy: Sendable, Equatable {
        var date: Date
        /// The delay after everything the policy must wait for, except a budget; seconds.
        var jitter: TimeInterval
    }

    /// The reasons that a failed reload did not serve.
    struct Retry: Sendable, Equatable {
        var reasons: Set<ReloadReason>
        var failedAt: Date
        var wait: TimeInterval
        /// Whether the failed reload already spent for the retry.
        var isPaid = false
    }

    package let settings: Settings
    /// The app's current activity. While it is active, reloads that start do not count, but the
    /// minimum intervals apply. Reloads withheld only by the budget are due as soon as the app
    /// becomes active.
    package var activity: AppActivity = []
    /// The widgets that cannot be built at the moment for reasons other than time; none of them is
    /// due. Their owed reloads are due as soon as the widget is removed from this set.
    package var withheld: Set<WidgetInfo> = []

    var records: [WidgetInfo: Record] = [:]
    /// Every key of `records` in a fixed order, so that equal inputs give equal results.
    private var order: [WidgetInfo] = []
    private var reloads: UInt64 = 0
    private var now = Date.distantPast

    package init(settings: Settings = Settings()) {
        self.settings = settings
    }

    /// Replaces the placed widgets as a whole. Widgets with the same configuration appear in the
    /// list once for each time they are placed. A new widget has its own full budget, and is not
    /// due before a request; the records of removed ones are dropped, with all owed reloads.
    package mutating func place(_ widgets: [WidgetInfo]) {
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

    /// Restores a placed widget from an archive: its budget, and the date at which its timeline's
    /// policy asks for a reload. The last reload that counted is taken as the last reload. A widget
    /// that is not placed is ignored.
    package mutating func resume(
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

    /// Requests a reload. Does nothing if the widget is not placed. Repeating a request for the
    /// same owed reload has no effect.
    package mutating func request(_ widget: WidgetInfo, _ reason: ReloadReason, now: Date) {
        clockStands(at: now)
        guard var record = records[widget] else { return }
        if record.requests.isEmpty { record.requestedAt = now }
        record.requests.insert(reason)
        records[widget] = record
    }

    /// Starts due reloads. Each is in progress, and its widget not due again, until
    /// ``finished(_:reloadDate:now:using:)``, ``failed(_:retryAfter:now:)`` or
    /// ``interrupted(_:now:)`` is called for it.
    ///
    /// - Parameter limit: The maximum number to start. The others stay owed, due again at once or,
    ///   if some are about to become due, with the next batch.
    /// - Returns: At most one reload for each widget: exempt ones first, then in the order of their
    ///   due dates.
    package mutating func due(now: Date, limit: Int = .max) -> [Reload] {
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

    /// Records that a provider succeeded; does nothing if the widget was removed meanwhile. The
    /// policy of its timeline replaces the previous one.
    ///
    /// - Parameter reloadDate: See ``AnyTimeline/reloadDate``. One that is not finite means never.
    package mutating func finished(
        _ reload: Reload, reloadDate: Date?, now: Date,
        using generator: inout some RandomNumberGenerator
    ) {
        clockStands(at: now)
        guard var record = records[reload.widget], record.running == reload.number else { return }
        record.running = nil
        record.policy = policy(reloadDate, record, using: &generator)
        records[reload.widget] = record
    }

    /// Records that a provider failed. The reasons of the reload stay owed and are retried after
    /// `wait` seconds, or earlier with a request that is due earlier. The retry counts towards the
    /// budget like the failed reload; `wait` replaces the minimum intervals.
    package mutating func failed(_ reload: Reload, retryAfter wait: TimeInterval, now: Date) {
        clockStands(at: now)
        guard var record = records[reload.widget], record.running == reload.number else { return }
        record.running = nil
        record.retry = Retry(reasons: reload.reasons, failedAt: now, wait: wait.asWait)
        records[reload.widget] = record
    }

    /// Records that a reload ended before its provider answered, through no fault of the provider.
    /// Its reasons stay pending and are due at once. The next reload, which serves them and all
    /// requests made meanwhile, spends nothing, because this one already did.
    package mutating func interrupted(_ reload: Reload, now: Date) {
        clockStands(at: now)
        guard var record = records[reload.widget], record.running == reload.number else { return }
        record.running = nil
        record.retry = Retry(reasons: reload.reasons, failedAt: now, wait: 0, isPaid: true)
        records[reload.widget] = record
    }

    /// Returns the date at which the next reload of a widget is due, regardless of other widgets;
    /// `nil` for never, while it is withheld, and while one is in progress. Unless another method
    /// is called, it runs then, or with a batch up to ``Settings/batchWindow`` later.
    package func dueDate(of widget: WidgetInfo) -> Date? {
        withheld.contains(widget) ? nil : records[widget].flatMap(dueDate)
    }

    /// Returns whether a reload for this reason is owed and has not started.
    func isOwed(_ widget: WidgetInfo, _ reason: ReloadReason) -> Bool {
        guard let record = records[widget] else { return false }
        return record.requests.contains(reason) || record.retry?.reasons.contains(reason) ?? false
    }

    /// Returns the budget of each widget with this configuration; `nil` when none is placed.
    /// Archive its ``ReloadBudget/json``.
    package func budget(of widget: WidgetInfo) -> ReloadBudget? {
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
        // A new timeline brings a new policy; after a failure a reload is owed anyway.
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
