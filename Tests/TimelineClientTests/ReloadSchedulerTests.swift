import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

@Suite struct ReloadSchedulerTests {
    private let ann = character("ann")
    private let bob = character("bob")
    private let day: Double = 86_400

    // MARK: Requests

    @Test func nothingIsDueThatNobodyAskedFor() {
        var widgets = ScheduledWidgets([ann, bob])
        #expect(widgets.nextDue == nil)
        #expect(widgets.due(1e9).isEmpty)
    }

    @Test func aFirstRequestRunsAtOnceWhateverItsReason() {
        for reason in [ReloadReason.policy, .notification, .app, .interaction, .system(.locale)] {
            var widgets = ScheduledWidgets([ann])
            widgets.request(ann, reason)
            #expect(widgets.nextDue == 0)
            let reloads = widgets.due(0)
            #expect(reloads.map(\.widget) == [ann])
            #expect(reloads.first?.reasons == [reason])
            #expect(widgets.nextDue == nil)
            #expect(widgets.due(1e9).isEmpty)
        }
    }

    @Test func severalRequestsForAWidgetAreServedByOneReload() {
        var widgets = ScheduledWidgets([ann])
        for reason in [ReloadReason.app, .notification, .notification, .policy] {
            widgets.request(ann, reason)
        }
        let reloads = widgets.due(0)
        #expect(reloads.map(\.reasons) == [[.app, .notification, .policy]])
        #expect(reloads.map(\.budgetsSpent) == [1])
    }

    @Test func anyNumberOfRequestsDuringAReloadLeadToExactlyOneMore() {
        var widgets = ScheduledWidgets([ann]) { $0.requestIntervalMin = 0 }
        widgets.request(ann, .app)
        let first = widgets.due(0)
        for _ in 0..<5 { widgets.request(ann, .interaction) }
        #expect(widgets.nextDue == nil)
        #expect(widgets.due(1).isEmpty)
        widgets.finish(first)
        let second = widgets.due(2)
        #expect(second.count == 1)
        widgets.finish(second)
        #expect(widgets.due(1e9).isEmpty)
    }

    // MARK: Intervals

    @Test func notificationsAndTheAppKeepTheIntervalToTheLastReload() {
        for reason in [ReloadReason.notification, .app] {
            var widgets = ScheduledWidgets([ann])
            widgets.reload(ann, .interaction, at: 100)
            #expect(widgets.reload(ann, reason, at: 101).isEmpty)
            #expect(widgets.nextDue == 400)
            #expect(widgets.due(399.9).isEmpty)
            #expect(widgets.due(400).count == 1)
        }
    }

    @Test func theIntervalCountsFromTheStart() {
        var widgets = ScheduledWidgets([ann])
        widgets.request(ann, .app)
        let reloads = widgets.due(0)
        widgets.now = 250
        widgets.finish(reloads)
        widgets.request(ann, .notification)
        #expect(widgets.nextDue == 300)
    }

    @Test func withoutAnIntervalANotificationRunsAtOnceAndThePolicyStillWaits() {
        var widgets = ScheduledWidgets([ann]) { $0.requestIntervalMin = 0 }
        widgets.reload(ann, .app, at: 10)
        let reloads = widgets.reload(ann, .notification, at: 11)
        #expect(reloads.count == 1)
        widgets.request(ann, .policy)
        #expect(widgets.nextDue == 311)
    }

    @Test func interactionAndSystemRunAtOnceAndTakeAlongWhatIsWithheld() {
        for reason in [ReloadReason.interaction, .system(.time)] {
            var widgets = ScheduledWidgets([ann])
            widgets.reload(ann, .app, at: 0)
            #expect(widgets.reload(ann, .notification, at: 1).isEmpty)
            let reloads = widgets.reload(ann, reason, at: 2)
            #expect(reloads.map(\.reasons) == [[.notification, reason]])
            #expect(reloads.map(\.budgetsSpent) == [0])
            #expect(widgets.nextDue == nil)
        }
    }

    // MARK: Policies

    @Test func aPolicyAsksAtItsDate() {
        var widgets = ScheduledWidgets([ann])
        widgets.request(ann, .app)
        widgets.finish(widgets.due(0), reloadDate: 1000)
        #expect(widgets.nextDue == 1000)
        #expect(widgets.due(999.9).isEmpty)
        let reloads = widgets.due(1000)
        #expect(reloads.map(\.reasons) == [[.policy]])
        #expect(reloads.map(\.budgetsSpent) == [1])
    }

    @Test func aPolicyAsksNoSoonerThanTheIntervalAllows() {
        var widgets = ScheduledWidgets([ann])
        widgets.request(ann, .app)
        widgets.finish(widgets.due(50), reloadDate: 10)
        #expect(widgets.nextDue == 350)
    }

    @Test func aPolicyOfNeverDoesNotAsk() {
        var widgets = ScheduledWidgets([ann])
        for reloadDate in [nil, Double.nan, .infinity] {
            widgets.request(ann, .interaction)
            widgets.finish(widgets.due(0), reloadDate: reloadDate)
            #expect(widgets.nextDue == nil)
        }
    }

    @Test func aReloadForAnotherReasonReplacesThePolicy() {
        var widgets = ScheduledWidgets([ann])
        widgets.request(ann, .app)
        widgets.finish(widgets.due(0), reloadDate: 1000)
        widgets.now = 500
        widgets.request(ann, .notification)
        let reloads = widgets.due(500)
        #expect(reloads.map(\.reasons) == [[.notification]])
        widgets.finish(reloads, reloadDate: 5000)
        #expect(widgets.nextDue == 5000)
    }

    @Test func jitterComesAfterTheDateAndIsATenthOfTheWaitAtMost() {
        for (reloadDate, range) in [
            (10_000.0, 10_000.0...10_060), (400, 400...440), (0, 300...330), (-1e9, 300...330),
        ] {
            var moments: Set<Double> = []
            for seed in 0..<50 {
                var widgets = ScheduledWidgets([ann]) { $0.policyJitterMax = 60 }
                widgets.generator = SplitMix64(seed: UInt64(seed))
                widgets.request(ann, .app)
                widgets.finish(widgets.due(0), reloadDate: reloadDate)
                let due = widgets.nextDue ?? 0
                #expect(range.contains(due))
                moments.insert(due)
            }
            #expect(moments.count == 50)
        }
    }

    // MARK: The budget

    @Test func whatTheBudgetWithholdsStaysOwedAndRunsWhenItAllows() {
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 2 }
        widgets.reload(ann, .notification, at: 0)
        widgets.reload(ann, .app, at: 1000)
        #expect(widgets.remaining(ann) == 0)
        #expect(widgets.reload(ann, .notification, at: 2000).isEmpty)
        #expect(widgets.nextDue == day)
        #expect(widgets.due(day - 1).isEmpty)
        let reloads = widgets.due(day)
        #expect(reloads.map(\.reasons) == [[.notification]])
        widgets.finish(reloads, reloadDate: day + 500)
        // The policy's reload needs budget as well.
        #expect(widgets.nextDue == day + 1000)
    }

    @Test func exemptReloadsSpendNothingAndNeedNothing() {
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 1 }
        for second in 0..<20 {
            let reason: ReloadReason =
                second.isMultiple(of: 2) ? .interaction : .system(.accessibility)
            #expect(widgets.reload(ann, reason, at: Double(second)).map(\.budgetsSpent) == [0])
        }
        #expect(widgets.remaining(ann) == 1)
    }

    @Test func nothingCountsWhileTheAppIsActive() {
        for activity in [AppActivity.foreground, .audioSession, .navigationSession] {
            var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 1 }
            widgets.reload(ann, .app, at: 0)
            widgets.request(ann, .notification)
            #expect(widgets.nextDue == day)
            widgets.scheduler.activity = activity
            // The budget no longer withholds it, but the interval does.
            #expect(widgets.nextDue == 300)
            #expect(widgets.due(300).map(\.budgetsSpent) == [0])
        }
    }

    @Test func whatIsOwedWaitsForTheBudgetAgainOnceTheAppIsNotActive() {
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 1 }
        widgets.reload(ann, .app, at: 0)
        widgets.scheduler.activity = [.foreground, .audioSession]
        widgets.request(ann, .notification)
        widgets.scheduler.activity = .audioSession
        #expect(widgets.nextDue == 300)
        widgets.scheduler.activity = []
        #expect(widgets.nextDue == day)
    }

    @Test func withoutABudgetNothingCounts() {
        var widgets = ScheduledWidgets([ann]) {
            $0.budgetLimit = nil
            $0.requestIntervalMin = 0
        }
        for second in 0..<10_000 {
            #expect(widgets.reload(ann, .app, at: Double(second)).map(\.budgetsSpent) == [0])
        }
    }

    @Test func oneReloadSpendsFromTheBudgetOfEachWidgetPlacedAlike() {
        var widgets = ScheduledWidgets([ann, bob, ann, ann])
        let reloads = widgets.reload(ann, .app, at: 0)
        #expect(reloads.map(\.widget) == [ann])
        #expect(reloads.map(\.budgetsSpent) == [3])
        #expect(widgets.remaining(bob) == ReloadBudget.defaultLimit)
        #expect(widgets.remaining(ann) == ReloadBudget.defaultLimit - 1)
    }

    @Test func placingOneMoreAlikeGivesTheOthersNoNewBudget() {
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 1 }
        widgets.reload(ann, .app, at: 0)
        widgets.scheduler.place([ann, ann])
        widgets.request(ann, .app)
        #expect(widgets.nextDue == day)
        widgets.scheduler.place([ann])
        #expect(widgets.nextDue == day)
    }

    // MARK: Batches

    @Test func widgetsDueWithinTheWindowRunTogether() {
        var widgets = ScheduledWidgets([ann, bob, status])
        for (widget, reloadDate) in [(ann, 1000.0), (bob, 1009), (status, 1011)] {
            widgets.request(widget, .app)
            widgets.finish(widgets.due(0), reloadDate: reloadDate)
        }
        #expect(widgets.nextDue == 1009)
        #expect(widgets.due(1008).isEmpty)
        #expect(widgets.due(1009).map(\.widget) == [ann, bob])
        #expect(widgets.nextDue == 1011)
    }

    @Test func aWidgetThatIsDueAloneDoesNotWait() {
        var widgets = ScheduledWidgets([ann, bob])
        widgets.request(ann, .notification)
        #expect(widgets.nextDue == 0)
    }

    @Test func noOneWaitsLongerThanTheWindowHoweverManyFollow() {
        let many = (0..<30).map { character("c\($0)") }
        var widgets = ScheduledWidgets(many)
        for (index, widget) in many.enumerated() {
            widgets.request(widget, .app)
            widgets.finish(widgets.due(0), reloadDate: 1000 + Double(index) * 4)
        }
        #expect(widgets.nextDue == 1008)
        #expect(widgets.due(1008).count == 3)
        #expect(widgets.nextDue == 1020)
    }

    @Test func aPersonDoesNotWaitForABatch() {
        var widgets = ScheduledWidgets([ann, bob, status])
        widgets.request(ann, .app)
        widgets.finish(widgets.due(0), reloadDate: 1005)
        widgets.now = 1000
        widgets.request(bob, .notification)
        #expect(widgets.nextDue == 1005)
        widgets.request(status, .interaction)
        #expect(widgets.nextDue == 1000)
        // A widget that waited for others and is due goes along; one that is not due does not.
        #expect(widgets.due(1000).map(\.widget) == [status, bob])
        #expect(widgets.nextDue == 1005)
    }

    @Test func withoutAWindowEachRunsWhenItIsDue() {
        var widgets = ScheduledWidgets([ann, bob]) { $0.batchWindow = 0 }
        for (widget, reloadDate) in [(ann, 1000.0), (bob, 1001)] {
            widgets.request(widget, .app)
            widgets.finish(widgets.due(0), reloadDate: reloadDate)
        }
        #expect(widgets.due(1000).map(\.widget) == [ann])
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

    @Test func eachWidgetSaysWhenItIsDueItself() {
        var widgets = ScheduledWidgets([ann, bob])
        for (widget, reloadDate) in [(ann, 1000.0), (bob, 1009)] {
            widgets.request(widget, .app)
            widgets.finish(widgets.due(0), reloadDate: reloadDate)
        }
        #expect(widgets.scheduler.dueDate(of: ann) == date(1000))
        #expect(widgets.scheduler.dueDate(of: bob) == date(1009))
        #expect(widgets.scheduler.dueDate(of: status) == nil)
        _ = widgets.due(1009)
        #expect(widgets.scheduler.dueDate(of: ann) == nil)
    }

    // MARK: Failures

    @Test func whatFailedStaysOwedAndIsTriedAgainAfterTheWait() {
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 2 }
        widgets.request(ann, .notification)
        let first = widgets.due(0)
        widgets.fail(first, retryAfter: 5)
        #expect(widgets.nextDue == 5)
        let second = widgets.due(5)
        #expect(second.map(\.reasons) == [[.notification]])
        #expect(second.map(\.budgetsSpent) == [1])
        widgets.fail(second, retryAfter: 5)
        #expect(widgets.nextDue == day)
    }

    @Test func aFailedInteractionIsTriedAgainForFreeButNotAtOnce() {
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 1 }
        widgets.reload(ann, .app, at: 0)
        widgets.now = 10
        widgets.request(ann, .interaction)
        widgets.fail(widgets.due(10), retryAfter: 30)
        #expect(widgets.due(39).isEmpty)
        #expect(widgets.due(40).map(\.budgetsSpent) == [0])
    }

    @Test func aPersonDoesNotWaitForARetryAndTheRetryIsServedWithIt() {
        var widgets = ScheduledWidgets([ann])
        widgets.request(ann, .app)
        widgets.fail(widgets.due(0), retryAfter: 300)
        let reloads = widgets.reload(ann, .interaction, at: 1)
        #expect(reloads.map(\.reasons) == [[.app, .interaction]])
        #expect(widgets.nextDue == nil)
    }

    @Test func waitsThatAreNoNumbersDoNoHarm() {
        for (wait, expected) in [(Double.nan, 0.0), (-5, 0), (.infinity, 366 * day)] {
            var widgets = ScheduledWidgets([ann])
            widgets.request(ann, .app)
            widgets.fail(widgets.due(0), retryAfter: wait)
            #expect(widgets.nextDue == expected)
        }
    }

    // MARK: Placing

    @Test func whatIsRemovedIsNotDueAndWhatIsNotPlacedIsNotTaken() {
        var widgets = ScheduledWidgets([ann])
        widgets.request(ann, .app)
        widgets.request(bob, .app)
        widgets.scheduler.place([bob])
        #expect(widgets.nextDue == nil)
        #expect(widgets.due(1e9).isEmpty)
        #expect(widgets.remaining(ann) == nil)
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

    @Test func placingTheSameAgainForgetsNothing() {
        var widgets = ScheduledWidgets([ann, bob])
        widgets.reload(ann, .app, at: 0)
        widgets.request(ann, .notification)
        widgets.request(bob, .system(.account))
        let reloads = widgets.due(0)
        let before = widgets.scheduler
        widgets.scheduler.place([ann, bob])
        #expect(widgets.scheduler == before)
        widgets.finish(reloads)
        #expect(widgets.nextDue == 300)
    }

    @Test func anArchiveBringsBackTheBudgetAndThePolicy() {
        var earlier = ScheduledWidgets([ann]) { $0.budgetLimit = 2 }
        earlier.reload(ann, .app, at: 0)
        earlier.reload(ann, .app, at: 1000)
        let budget = earlier.scheduler.budget(of: ann)
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 2 }
        for widget in [ann, bob] {
            widgets.scheduler.resume(
                widget, budget: budget ?? ReloadBudget(), reloadDate: date(1100),
                now: date(1050), using: &widgets.generator)
        }
        #expect(widgets.scheduler.budget(of: ann) == budget)
        #expect(widgets.nextDue == day)
        widgets.scheduler.activity = .foreground
        #expect(widgets.nextDue == 1300)
    }

    // MARK: The clock

    @Test func aClockThatWentBackWithholdsNoLongerThanTheRulesDo() {
        var widgets = ScheduledWidgets([ann, bob, status]) { $0.budgetLimit = 1 }
        let year = 366 * day
        widgets.reload(ann, .app, at: year)
        widgets.reload(bob, .interaction, at: year)
        widgets.now = year + 1
        for widget in [ann, bob, status] { widgets.request(widget, .notification) }
        widgets.fail(widgets.due(year + 1), retryAfter: 60)
        #expect(widgets.due(0).isEmpty)
        #expect(widgets.nextDue == 300)
        #expect(widgets.due(300).map(\.widget) == [bob])
        // Its own failed attempt has used the budget up.
        #expect(widgets.nextDue == day)
        #expect(widgets.due(day).map(\.widget) == [ann, status])
    }

    @Test func aClockThatWentForthEndsWaitsEarlyAndGivesNothingAwayWhenItComesBack() {
        var widgets = ScheduledWidgets([ann]) { $0.budgetLimit = 1 }
        widgets.reload(ann, .app, at: 0)
        widgets.request(ann, .notification)
        let before = widgets.scheduler
        var jumped = widgets
        #expect(jumped.due(100 * day).count == 1)
        widgets.scheduler.request(bob, .app, now: date(100 * day))
        widgets.scheduler.request(bob, .app, now: date(0))
        #expect(widgets.scheduler == before)
    }

    @Test func aPolicyDateStaysWhereItIsWhenTheClockGoesBack() {
        var widgets = ScheduledWidgets([ann])
        widgets.now = 10_000
        widgets.request(ann, .app)
        widgets.finish(widgets.due(10_000), reloadDate: 11_000)
        #expect(widgets.due(0).isEmpty)
        #expect(widgets.nextDue == 11_000)
    }
}
