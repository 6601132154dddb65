import Foundation

@testable import TimelineClient

/// A moment, in seconds after the reference date.
func date(_ seconds: Double) -> Date {
    Date(timeIntervalSinceReferenceDate: seconds)
}

/// A scheduler, with the clock and the generator it is asked with.
struct ScheduledWidgets {
    var scheduler: ReloadScheduler
    var generator = JitterGenerator(seed: 1)
    var now: Double = 0

    /// Without jitter, for dates that tests can name.
    init(_ widgets: [WidgetInfo], adjust: (inout ReloadScheduler.Settings) -> Void = { _ in }) {
        var settings = ReloadScheduler.Settings()
        settings.policyJitterMax = 0
        adjust(&settings)
        scheduler = ReloadScheduler(settings: settings)
        scheduler.place(widgets)
    }

    /// When something is due next, in seconds.
    var nextDue: Double? { scheduler.nextDue?.timeIntervalSinceReferenceDate }

    mutating func request(_ widget: WidgetInfo, _ reason: ReloadReason) {
        scheduler.request(widget, reason, now: date(now))
    }

    /// What is due at this second, which then is the present.
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

    /// Asks, starts and finishes at this second.
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

    /// What is left of the budget of each widget placed like this.
    func remaining(_ widget: WidgetInfo) -> Int? {
        var budget = scheduler.budget(of: widget)
        return budget?.remaining(now: date(now))
    }
}
