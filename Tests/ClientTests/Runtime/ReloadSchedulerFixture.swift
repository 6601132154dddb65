import Foundation
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

/// A scheduler among people, apps, failing providers and jumping clocks, beside the simplest
/// account of the same world. The account lists everything requested and spent, loses entries only
/// where a rule says so, and answers one question: whether a widget may be reloaded at a moment.
struct ReloadSchedulerFixture {
    /// The account of one widget.
    struct Account {
        /// The counted reloads of each placed instance, in the order in which they were placed.
        var spent: [[Date]] = []
        var asked: [(reason: ReloadReason, at: Date)] = []
        var retry: (reasons: Set<ReloadReason>, at: Date, wait: TimeInterval, isPaid: Bool)?
        var policy: (date: Date, jitter: TimeInterval)?
        var lastReload: Date?
        var running: ReloadScheduler.Reload?
    }

    private(set) var scheduler: ReloadScheduler
    private(set) var violations: [String] = []
    private(set) var reloads = 0
    private(set) var withheld = 0
    private var accounts: [WidgetInfo: Account] = [:]
    private var placed: [WidgetInfo] = []
    private var now = date(0)
    /// The generator of the events.
    private var chance: SplitMix64
    /// The generator of the jitter; the account draws the same values as the scheduler.
    private var jitter: SplitMix64
    private let settings: ReloadScheduler.Settings
    private let widgets = (0..<5).map { character("c\($0)") }

    init(seed: UInt64) {
        chance = SplitMix64(seed: seed)
        jitter = SplitMix64(seed: ~seed)
        var settings = ReloadScheduler.Settings()
        settings.policyIntervalMin = Double([0, 300, 2000].randomElement(using: &chance) ?? 0)
        settings.requestIntervalMin = Double([0, 300, 2000].randomElement(using: &chance) ?? 0)
        settings.policyJitterMax = Double([0, 60].randomElement(using: &chance) ?? 0)
        settings.batchWindow = Double([0, 10, 500].randomElement(using: &chance) ?? 0)
        settings.budgetLimit = [nil, 1, 2, 5, 12].randomElement(using: &chance) ?? nil
        self.settings = settings
        scheduler = ReloadScheduler(settings: settings)
    }

    // MARK: The rules, as the documentation states them

    private func isFree(_ reasons: Set<ReloadReason>) -> Bool {
        settings.budgetLimit == nil || !scheduler.activity.isEmpty
            || reasons.contains(where: \.isExempt)
    }

    private func hasBudget(_ account: Account, at moment: Date) -> Bool {
        account.spent.allSatisfy { list in
            list.count { moment < $0 + 86_400 } < (settings.budgetLimit ?? .max)
        }
    }

    private func isPast(_ wait: TimeInterval, _ account: Account, at moment: Date) -> Bool {
        account.lastReload.map { $0 + wait <= moment } ?? true
    }

    private func policyAsks(_ account: Account, at moment: Date) -> Bool {
        guard let policy = account.policy else { return false }
        // The sums are the same as the scheduler's, because they are not exact.
        let start = max(
            policy.date, account.lastReload.map { $0 + settings.policyIntervalMin } ?? policy.date)
        return start + policy.jitter <= moment
    }

    /// Returns the reasons that allow a reload at a moment under the rules, or none.
    private func allowed(_ account: Account, at moment: Date) -> Set<ReloadReason> {
        guard account.running == nil else { return [] }
        var reasons: Set<ReloadReason> = []
        for (reason, at) in account.asked where at <= moment {
            if reason.isExempt {
                reasons.insert(reason)
            } else {
                let wait =
                    reason == .policy ? settings.policyIntervalMin : settings.requestIntervalMin
                if isPast(wait, account, at: moment),
                    isFree([reason]) || hasBudget(account, at: moment)
                {
                    reasons.insert(reason)
                }
            }
        }
        if policyAsks(account, at: moment), isFree([]) || hasBudget(account, at: moment) {
            reasons.insert(.policy)
        }
        if let retry = account.retry, retry.at + retry.wait <= moment,
            retry.isPaid || isFree(retry.reasons) || hasBudget(account, at: moment)
        {
            reasons.formUnion(retry.reasons)
        }
        return reasons
    }

    // MARK: Events

    mutating func step() {
        switch Int.random(in: 0..<100, using: &chance) {
        case 0..<35: ask()
        case 35..<65: pass(Double(Int.random(in: 0...400, using: &chance)))
        case 65..<70: pass(Double(Int.random(in: 0...40_000, using: &chance)))
        case 70..<90: end()
        case 90..<93: place()
        case 93..<97:
            scheduler.activity =
                [[], .foreground, .audioSession, [.foreground, .navigationSession]]
                .randomElement(using: &chance) ?? []
        case 97: pass(-Double(Int.random(in: 0...200_000, using: &chance)))
        default: atNextDue()
        }
        checkNextDue()
        run()
        for (widget, account) in accounts { check(widget, account) }
    }

    /// Runs everything that is owed, without failures, requests and policies.
    mutating func settle() {
        for _ in 0..<1000 {
            for account in accounts.values {
                guard let reload = account.running else { continue }
                finish(reload, reloadDate: nil)
            }
            guard let due = scheduler.nextDue else { break }
            now = max(now, due)
            checkNextDue()
            run()
        }
        for (widget, account) in accounts {
            if !account.asked.isEmpty || account.retry != nil || account.policy != nil {
                violations.append("\(widget) is owed a reload for ever")
            }
        }
    }

    private mutating func ask() {
        let reasons: [ReloadReason] = [
            .notification, .notification, .app, .app, .policy, .interaction, .system(.locale),
        ]
        // The chosen widget may not be placed.
        guard let widget = widgets.randomElement(using: &chance),
            let reason = reasons.randomElement(using: &chance)
        else { return }
        scheduler.request(widget, reason, now: now)
        accounts[widget]?.asked.append((reason, now))
    }

    private mutating func place() {
        placed = widgets.flatMap {
            [WidgetInfo](repeating: $0, count: Int.random(in: 0...3, using: &chance))
        }
        scheduler.place(placed)
        for widget in widgets {
            let count = placed.count { $0 == widget }
            guard count > 0 else {
                accounts[widget] = nil
                continue
            }
            var account = accounts[widget] ?? Account()
            while account.spent.count > count { account.spent.removeLast() }
            while account.spent.count < count { account.spent.append([]) }
            accounts[widget] = account
        }
    }

    private mutating func end() {
        guard
            let reload = accounts.values.compactMap(\.running)
                .sorted(by: { $0.number < $1.number }).randomElement(using: &chance)
        else { return }
        guard Int.random(in: 0..<8, using: &chance) > 0 else {
            scheduler.interrupted(reload, now: now)
            accounts[reload.widget]?.running = nil
            accounts[reload.widget]?.retry = (reload.reasons, now, 0, true)
            return
        }
        guard Int.random(in: 0..<4, using: &chance) > 0 else {
            let wait = Double(Int.random(in: 0...600, using: &chance))
            scheduler.failed(reload, retryAfter: wait, now: now)
            accounts[reload.widget]?.running = nil
            accounts[reload.widget]?.retry = (reload.reasons, now, wait, false)
            return
        }
        let wait = Double(Int.random(in: -5000...20_000, using: &chance))
        finish(reload, reloadDate: Bool.random(using: &chance) ? now + wait : nil)
    }

    private mutating func finish(_ reload: ReloadScheduler.Reload, reloadDate: Date?) {
        var same = jitter
        scheduler.finished(reload, reloadDate: reloadDate, now: now, using: &jitter)
        accounts[reload.widget]?.running = nil
        guard let reloadDate else { return }
        let start = max(
            reloadDate,
            accounts[reload.widget]?.lastReload.map { $0 + settings.policyIntervalMin }
                ?? reloadDate)
        let most = min(settings.policyJitterMax, max(0, start.timeIntervalSince(now)) / 10)
        accounts[reload.widget]?.policy = (
            reloadDate, Double.random(in: 0...most, using: &same)
        )
    }

    private mutating func pass(_ seconds: TimeInterval) {
        now += seconds
        guard seconds < 0 else { return }
        // Every date that the clock now places in the future counts as the present.
        for (widget, account) in accounts {
            var account = account
            account.spent = account.spent.map { $0.map { min($0, now) } }
            account.asked = account.asked.map { ($0.reason, min($0.at, now)) }
            if let retry = account.retry {
                account.retry = (retry.reasons, min(retry.at, now), retry.wait, retry.isPaid)
            }
            account.lastReload = account.lastReload.map { min($0, now) }
            accounts[widget] = account
        }
        // The scheduler learns of the jump only with the next call.
        scheduler.request(character("nobody"), .app, now: now)
    }

    private mutating func atNextDue() {
        guard let due = scheduler.nextDue, due.timeIntervalSince(now) < 1e6 else { return }
        now = max(now, due)
    }

    // MARK: Invariants

    /// Checks that nothing is due before `nextDue`, and that something is due at it.
    private mutating func checkNextDue() {
        var copy = scheduler
        guard let due = copy.nextDue else {
            if !copy.due(now: max(now, .distantFuture)).isEmpty {
                violations.append("due, but nextDue says never")
            }
            return
        }
        let moment = max(due, now)
        if due > now {
            if !copy.due(now: now).isEmpty { violations.append("due now, before nextDue") }
            let before = Date(
                timeIntervalSinceReferenceDate: due.timeIntervalSinceReferenceDate.nextDown)
            if before > now, !copy.due(now: before).isEmpty {
                violations.append("due just before nextDue")
            }
        }
        if copy.due(now: moment).isEmpty { violations.append("nothing is due at nextDue") }
    }

    private mutating func run() {
        let allowed = accounts.mapValues { self.allowed($0, at: now) }.filter { !$0.value.isEmpty }
        let limit = [1, 2, .max].randomElement(using: &chance) ?? .max
        let due = scheduler.due(now: now, limit: limit)
        if due.isEmpty {
            withheld += accounts.values.count { $0.running == nil && !$0.asked.isEmpty }
            for (widget, account) in accounts where account.running == nil {
                if account.asked.contains(where: \.reason.isExempt) {
                    violations.append("\(widget) is exempt, but waits")
                }
            }
            for widget in allowed.keys {
                if let account = accounts[widget],
                    !self.allowed(account, at: now - settings.batchWindow).isEmpty
                {
                    violations.append("\(widget) waits longer than the window")
                }
            }
        } else {
            let names = Set(due.map(\.widget))
            if due.count != min(limit, allowed.count) || names.count != due.count
                || !names.isSubset(of: allowed.keys)
            {
                violations.append("reloads \(names), allowed are \(allowed.keys)")
            }
            let exempt = accounts.filter {
                $0.value.running == nil && $0.value.asked.contains(where: \.reason.isExempt)
            }
            if due.prefix(exempt.count).contains(where: { exempt[$0.widget] == nil }) {
                violations.append("an exempt reload is not among the first")
            }
        }
        for reload in due { start(reload) }
    }

    private mutating func start(_ reload: ReloadScheduler.Reload) {
        guard var account = accounts[reload.widget] else { return }
        reloads += 1
        var reasons = Set(account.asked.map(\.reason)).union(account.retry?.reasons ?? [])
        if policyAsks(account, at: now) { reasons.insert(.policy) }
        if reload.reasons != reasons { violations.append("\(reload) serves not \(reasons)") }
        let isPaid = account.retry?.isPaid ?? false
        let spends = isPaid || isFree(reload.reasons) ? 0 : account.spent.count
        if reload.budgetsSpent != spends {
            violations.append("\(reload) spends from \(reload.budgetsSpent) instead of \(spends)")
        }
        if spends > 0 {
            for index in account.spent.indices { account.spent[index].append(now) }
            if account.spent.contains(where: { list in
                list.count { now < $0 + 86_400 } > settings.budgetLimit ?? .max
            }) {
                violations.append("\(reload) spends more than there is")
            }
        }
        account.asked = []
        account.retry = nil
        account.policy = nil
        account.lastReload = now
        account.running = reload
        accounts[reload.widget] = account
    }

    private mutating func check(_ widget: WidgetInfo, _ account: Account) {
        guard var budget = scheduler.budget(of: widget), let limit = settings.budgetLimit else {
            return
        }
        let least = account.spent.map { list in limit - list.count { now < $0 + 86_400 } }.min()
        // The difference is below zero when the clock went forward, reloads ran, and it came back.
        let left = least.map { max(0, $0) }
        if budget.remaining(now: now) != left {
            violations.append("\(widget): \(budget.remaining(now: now)) left, not \(left ?? -1)")
        }
        if budget.dates.count > limit { violations.append("the budget grows without bound") }
    }
}
