import Foundation
import WidgetModel

@testable import TimelineClient

/// Returns a moment, in seconds after the reference date.
func date(_ seconds: Double) -> Date {
    Date(timeIntervalSinceReferenceDate: seconds)
}

/// A scheduler together with its clock and its random generator.
struct ScheduledWidgets {
    var scheduler: ReloadScheduler
    var generator = SplitMix64(seed: 1)
    var now: Double = 0

    /// Creates a scheduler without jitter, so that tests can name the dates.
    init(_ widgets: [WidgetInfo], adjust: (inout ReloadScheduler.Settings) -> Void = { _ in }) {
        var settings = ReloadScheduler.Settings()
        settings.policyJitterMax = 0
        adjust(&settings)
        scheduler = ReloadScheduler(settings: settings)
        scheduler.place(widgets)
    }

    /// The second at which something is due next.
    var nextDue: Double? { scheduler.nextDue?.timeIntervalSinceReferenceDate }

    mutating func request(_ widget: WidgetInfo, _ reason: ReloadReason) {
        scheduler.request(widget, reason, now: date(now))
    }

    /// Sets the clock to a second, and returns the reloads that are due at it.
    mutating func due(_ second: Double) -> [ReloadScheduler.Reload] {
        now = second
        return scheduler.due(now: date(now))
    }

    mutating func finish(_ reloads: [ReloadScheduler.Reload], reloadDate: Double? = nil) {
        for reload in reloads {
            scheduler.finished(
                reload, reloadDate: reloadDate.map(date), now: date(now), using: &generator)
        }
    }

    mutating func fail(_ reloads: [ReloadScheduler.Reload], retryAfter wait: TimeInterval) {
        for reload in reloads { scheduler.failed(reload, retryAfter: wait, now: date(now)) }
    }

    /// Requests, starts and finishes a reload at this second.
    @discardableResult
    mutating func reload(
        _ widget: WidgetInfo, _ reason: ReloadReason, at second: Double
    ) -> [ReloadScheduler.Reload] {
        now = second
        request(widget, reason)
        let reloads = due(second)
        finish(reloads)
        return reloads
    }

    /// Returns the remaining budget of each widget placed like this, or `nil` when there is none.
    func remaining(_ widget: WidgetInfo) -> Int? {
        var budget = scheduler.budget(of: widget)
        return budget?.remaining(now: date(now))
    }
}
