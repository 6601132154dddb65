import Foundation
import WidgetModel

/// The engine's side of its ``ReloadScheduler``: who is placed, what they are asked for, and when
/// to look again.
extension ReloadEngine {
    /// The scheduler's clock may be set, so that a date it names may come sooner or later than a
    /// timer does: it is asked again after this long at the latest.
    static let sleepMax = Duration.seconds(900)
    /// No timer runs for less, or it would spin when it fires a little early.
    private static let sleepMin = Duration.milliseconds(1)

    mutating func clockStands(at date: Date) {
        // A reload that was spent in what is now the future counts from now on: that is to survive
        // a restart too, or it would count for longer with every one.
        if date < self.date || !resumedBudgets.isEmpty,
            budgets.values.contains(where: { $0.dates.last ?? date > date })
        {
            mustSaveBudgets = true
        }
        self.date = date
    }

    mutating func started(_ kept: [EngineEvent.KeptTimeline]) {
        for timeline in kept {
            let item = Archived.timeline(timeline.widget)
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

    /// Notes that what is built, or being built, of `item` may be older than it has to be.
    mutating func markStale(_ item: Archived) {
        guard var record = records[item] else { return }
        // A first build that is under way will be something to show: this one is for what is new.
        let reason: ReloadReason =
            record.hasTimeline || record.build != nil ? .notification : .placeholder
        if record.build == nil { record.isStale = true } else { record.build?.isOutdated = true }
        records[item] = record
        if case .timeline(let info) = item { scheduler.request(info, reason, now: date) }
    }

    mutating func requested(_ request: ReloadRequest, _ reason: ReloadReason) {
        for item in order {
            guard case .timeline(let info) = item else { continue }
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
        // One of another log than what was heard says nothing that could be compared.
        if let cursor, cursor.epoch == heard?.epoch {
            records[.timeline(info)]?.reached = cursor
            if link == .active { logEpoch = cursor.epoch }
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

    /// Tells the scheduler what is placed, each widget as often as it is.
    mutating func placeAll() {
        let gone = Set(scheduler.records.keys)
        scheduler.place(
            desired.widgets.flatMap { widget in
                [WidgetInfo](repeating: WidgetInfo(widget), count: max(1, widget.count))
            })
        if !gone.isSubset(of: scheduler.records.keys) { mustSaveBudgets = true }
    }

    /// When the next timeline will be asked for, unless something happens before: the earliest of
    /// all placed widgets, with those of its batch. `nil` when nothing is known that will ask.
    package var nextReload: Date? { scheduler.nextDue }

    /// When the next timeline of this widget will be asked for, unless something happens before.
    package func nextReload(of info: WidgetInfo) -> Date? { scheduler.dueDate(of: info) }

    /// When to look at the scheduler again, on the clock of `now`.
    var nextLook: Duration? {
        guard let due = scheduler.nextDue else { return nil }
        let seconds = due.timeIntervalSince(date)
        // What is due already waits for a place, not for time.
        guard seconds > 0 else { return nil }
        let sleep = Duration.seconds(min(seconds, Self.sleepMax / .seconds(1)))
        return now + max(sleep, Self.sleepMin)
    }
}

extension ReloadScheduler {
    fileprivate var limit: Int { settings.budgetLimit ?? .max }
}

extension WidgetInfo {
    /// The widget of a registration.
    package init(_ widget: ConfiguredWidget) {
        self.init(
            kind: widget.kind, family: WidgetFamily(rawValue: widget.family),
            configuration: widget.parameters)
    }
}
