import Foundation
import WidgetModel
import WidgetViews

/// The connection between the engine and its ``ReloadScheduler``: the placed widgets, the requested
/// reloads, and the time of the next wake-up.
extension ReloadEngine {
    /// The longest sleep. The device's clock may be set, so that a due date comes earlier or later
    /// than a timer fires; the scheduler is asked again after this time at the latest.
    static let sleepMax = Duration.seconds(900)
    /// The shortest sleep. A timer that fires slightly early must not lead to a busy loop.
    private static let sleepMin = Duration.milliseconds(1)

    mutating func clockStands(at date: Date) {
        // If the clock was set back, a reload spent in what is now the future counts from now on.
        // This must survive a restart, or each restart would extend it.
        if date < self.date || !resumedBudgets.isEmpty,
            budgets.values.contains(where: { $0.dates.last ?? date > date })
        {
            mustSaveBudgets = true
        }
        self.date = date
    }

    mutating func started(_ kept: [EngineEvent.KeptTimeline]) {
        for timeline in kept {
            let item = EngineItem.timeline(timeline.widget)
            guard records[item] != nil else { continue }
            records[item]?.hasTimeline = true
        }
        let dates = Dictionary(
            kept.map { ($0.widget, $0.reloadDate) }, uniquingKeysWith: { $1 })
        for item in order {
            guard case .timeline(let info) = item, let record = records[item] else { continue }
            scheduler.resume(
                info, budget: resumedBudgets[info] ?? ReloadBudget(limit: scheduler.limit),
                reloadDate: dates[info] ?? nil, now: date, using: &generator)
            guard record.cursor != nil, record.awaitsBuild || !record.hasTimeline else { continue }
            records[item]?.awaitsBuild = true
            markStale(item)
        }
        resumedBudgets = [:]
    }

    mutating func unhidden(_ timeline: EngineEvent.KeptTimeline) {
        let info = timeline.widget
        guard let budget = scheduler.budget(of: info),
            records[.timeline(info)]?.build == nil
        else { return }
        scheduler.resume(
            info, budget: budget, reloadDate: timeline.reloadDate, now: date, using: &generator)
    }

    /// Records that the item may be outdated, or will be when its current build ends.
    mutating func markStale(_ item: EngineItem) {
        guard var record = records[item] else { return }
        // A first build in progress will provide something to show, so this request is for the
        // newer change.
        let reason: ReloadReason =
            record.hasTimeline || record.build != nil ? .notification : .placeholder
        if record.build == nil { record.isStale = true } else { record.build?.isOutdated = true }
        records[item] = record
        guard case .timeline(let info) = item else { return }
        // A Live Activity has no budget here.
        scheduler.request(info, info.activityID == nil ? reason : .placeholder, now: date)
    }

    mutating func requested(_ request: ReloadRequest, _ reason: ReloadReason) {
        for item in order {
            guard case .timeline(let info) = item, info.activityID == nil else { continue }
            switch request {
            case .all: break
            case .kind(let kind): guard info.kind == kind else { continue }
            case .timeline(let wanted): guard info == wanted else { continue }
            }
            scheduler.request(info, reason, now: date)
        }
    }

    mutating func interacted(_ info: WidgetInfo, at cursor: Cursor?) {
        interacting[info] = nil
        // A cursor of another log is not comparable to the last notification.
        if let cursor, cursor.epoch == link.receivedCursor?.epoch {
            records[.timeline(info)]?.knownCursor = cursor
            if link.state == .active { link.logEpoch = cursor.epoch }
        }
        scheduler.request(info, .interaction, now: date)
    }

    mutating func recommendationsInvalidated() {
        for item in order {
            guard case .recommendations = item else { continue }
            records[item]?.retryAt = nil
            markStale(item)
        }
    }

    /// Passes the placed widgets to the scheduler, each as often as it is placed.
    mutating func placeAll() {
        let gone = Set(scheduler.records.keys)
        let activities = desired.activities.map { WidgetInfo($0) }
        scheduler.place(
            desired.widgets.flatMap { widget in
                [WidgetInfo](repeating: WidgetInfo(widget), count: max(1, widget.count))
            } + activities)
        if !gone.isSubset(of: scheduler.records.keys) { mustSaveBudgets = true }
    }

    /// The earliest date at which any placed widget will be asked for its timeline, together with
    /// those of its batch, unless an event comes first; `nil` when no reload is scheduled.
    package var nextReload: Date? { scheduler.nextDue }

    /// Returns the date at which this widget will be asked for its timeline, unless an event comes
    /// first.
    package func nextReload(of info: WidgetInfo) -> Date? { scheduler.dueDate(of: info) }

    /// The time to check the scheduler again, on the clock of `now`.
    var nextLook: Duration? {
        guard let due = scheduler.nextDue else { return nil }
        let seconds = due.timeIntervalSince(date)
        // A reload that is already due waits for a free slot, not for time.
        guard seconds > 0 else { return nil }
        let sleep = Duration.seconds(min(seconds, Self.sleepMax / .seconds(1)))
        return now + max(sleep, Self.sleepMin)
    }
}

extension ReloadScheduler {
    fileprivate var limit: Int { settings.budgetLimit ?? .max }
}

extension WidgetInfo {
    package init(_ widget: ConfiguredWidget) {
        self.init(
            kind: widget.kind, family: WidgetFamily(rawValue: widget.family),
            configuration: widget.parameters)
    }
}
