import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

@Suite struct ReloadSchedulerTests {
    private let ann = character("ann")
    private let bob = character("bob")
    private let day: Double = 86_400

    @Test(arguments: 0..<20)
    func itReloadsWhatIsAskedForWhenTheRulesAllowItAndNothingElse(block: UInt64) {
        var reloads = 0
        var withheld = 0
        for seed in (block * 6)..<(block * 6 + 6) {
            var world = ReloadSchedulerFixture(seed: seed)
            for _ in 0..<1000 { world.step() }
            world.settle()
            #expect(world.violations.first == nil, "seed \(seed)")
            reloads += world.reloads
            withheld += world.withheld
        }
        // A world without events, or one in which nothing has to wait, would prove nothing.
        #expect(reloads > 100)
        #expect(withheld > 100)
    }

    // MARK: What the account of that world leaves open

    /// Reloads that become due within the window run together.
    @Test func noOneWaitsLongerThanTheWindowHoweverManyFollow() {
        let many = (0..<30).map { character("c\($0)") }
        var widgets = ScheduledWidgets(many)
        for (index, widget) in many.enumerated() {
            widgets.request(widget, .app)
            widgets.finish(widgets.due(0), reloadDate: 1000 + Double(index) * 4)
        }
        #expect(widgets.nextDue == 1008)
        #expect(widgets.due(1007).isEmpty)
        #expect(widgets.due(1008).map(\.widget) == Array(many.prefix(3)))
        #expect(widgets.nextDue == 1020)
        // Each says when it is due itself.
        #expect(widgets.scheduler.dueDate(of: many[3]) == date(1012))
        #expect(widgets.scheduler.dueDate(of: many[0]) == nil, "its reload is in progress")
    }

    @Test func ofMoreThanMayStartThoseGoFirstThatPeopleOrTimeUrge() {
        let many = (0..<6).map { character("c\($0)") }
        var widgets = ScheduledWidgets(many)
        for (index, second) in [(4, 10.0), (2, 20), (1, 20), (3, 25), (0, 30), (5, 40)] {
            widgets.now = second
            widgets.request(many[index], index == 3 ? .interaction : .app)
        }
        var started: [[WidgetInfo]] = []
        while widgets.nextDue != nil {
            started.append(widgets.scheduler.due(now: date(40), limit: 2).map(\.widget))
        }
        #expect(started == [[many[3], many[4]], [many[1], many[2]], [many[0], many[5]]])
        widgets.scheduler = ScheduledWidgets(many).scheduler
        widgets.request(many[0], .app)
        #expect(widgets.scheduler.due(now: date(50), limit: 0).isEmpty)
        #expect(widgets.scheduler.due(now: date(50), limit: -1).isEmpty)
        #expect(widgets.nextDue == 40)
    }

    @Test func waitsAndPoliciesThatAreNoNumbersDoNoHarm() {
        for (wait, expected) in [(Double.nan, 0.0), (-5, 0), (.infinity, 366 * day)] {
            var widgets = ScheduledWidgets([ann])
            widgets.request(ann, .app)
            widgets.fail(widgets.due(0), retryAfter: wait)
            #expect(widgets.nextDue == expected)
        }
        for reloadDate in [Double.nan, .infinity] {
            var widgets = ScheduledWidgets([ann])
            widgets.request(ann, .app)
            widgets.finish(widgets.due(0), reloadDate: reloadDate)
            #expect(widgets.nextDue == nil)
        }
    }

    @Test func theEndOfAReloadFromBeforeTheRemovalIsNotTakenForThatOfALaterOne() {
        var widgets = ScheduledWidgets([ann])
        widgets.request(ann, .interaction)
        let old = widgets.due(0)
        widgets.scheduler.place([])
        widgets.finish(old, reloadDate: 50)
        widgets.scheduler.place([ann])
        widgets.request(ann, .interaction)
        let new = widgets.due(1)
        widgets.finish(old, reloadDate: 50)
        widgets.fail(old, retryAfter: 1)
        widgets.request(ann, .interaction)
        #expect(widgets.due(2).isEmpty)
        widgets.finish(new)
        #expect(widgets.due(2).count == 1)
    }

    @Test func anArchiveBringsBackTheBudgetAndThePolicy() {
        let budget = ReloadBudget(dates: [date(0), date(1000)], limit: 2)
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 2 }
        for widget in [ann, bob] {
            widgets.scheduler.resume(
                widget, budget: budget, reloadDate: date(1100), now: date(1050),
                using: &widgets.generator)
        }
        #expect(widgets.scheduler.budget(of: ann) == budget)
        #expect(widgets.nextDue == day)
        widgets.scheduler.activity = .foreground
        #expect(widgets.nextDue == 1300)
    }
}

/// A scheduler together with its clock and its random generator.
private struct ScheduledWidgets {
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
}

/// What is read of a budget. The models of the scheduler and of the engine spend it.
@Suite struct ReloadBudgetTests {
    @Test func theNewestReloadsThatTheLimitAllowsAreRead() {
        let budget = ReloadBudget([.number(70.5), .integer(30), .number(10.5)], limit: 2)
        #expect(budget?.dates == [date(30), date(70.5)])
        #expect(ReloadBudget([1, 2], limit: -1)?.dates == [date(2)])
        #expect(ReloadBudget(limit: .max).limit == ReloadBudget.limitMax)
    }

    @Test func whatIsNotABudgetIsNotRead() {
        let tooMany = [JSONValue](repeating: 1, count: ReloadBudget.limitMax + 1)
        let others: [JSONValue] = [
            .null, ["yesterday"], [.number(.infinity)], [.number(.nan)], .array(tooMany),
        ]
        for other in others { #expect(ReloadBudget(other) == nil) }
    }
}

@Suite struct EntrySequenceTests {
    @Test(
        arguments: [
            // Nothing is shown without entries, nor before their dates.
            ([], 0, nil, nil), ([100], 99.5, nil, 100), ([100], 100, 0, nil),
            // The entries may be in any order.
            ([900, 0, 300], 299, 1, 300), ([900, 0, 300], 300, 2, 900),
            ([900, 0, 300], 900, 0, nil),
            // Five minutes are advice: no entry is left out or late.
            ([0, 10, 300, 301], 9, 0, 10), ([0, 10, 300, 301], 10, 1, 300),
            ([0, 10, 300, 301], 301, 3, nil),
            // Of entries with one date the last of the timeline is shown.
            ([5, 5, 5], 5, 2, nil),
            // Dates that are not finite do no harm.
            ([.nan, 1, .infinity, -.infinity, 2], 1, 1, 2),
            ([.nan, 1, .infinity, -.infinity, 2], 1e9, 4, nil),
        ] as [([Double], Double, Int?, Double?)])
    func theLatestEntryThatHasBegunIsShown(
        dates: [Double], now: Double, shown: Int?, next: Double?
    ) {
        let sequence = EntrySequence(dates: dates.map(date))
        #expect(sequence.index(at: date(now)) == shown)
        #expect(sequence.nextChange(after: date(now)) == next.map(date))
    }

    @Test func theShortestSpacingIsThatOfTwoEntries() {
        #expect(EntrySequence(dates: [0, 10, 300, 301].map(date)).shortestSpacing == 1)
        #expect(EntrySequence(dates: [date(5)]).shortestSpacing == nil)
    }
}
