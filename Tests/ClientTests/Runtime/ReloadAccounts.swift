import Foundation

@testable import TimelineRuntime
@testable import WidgetViews

/// The simplest account of the reloads that placed widgets are owed and have spent. Its lists lose
/// entries only where a rule says so, and the engine must agree with it at every moment.
struct ReloadAccounts {
    /// The account of one placed widget.
    struct Account {
        /// The dates at which the reloads that count began.
        var spent: [Date] = []
        /// Whether a reload was notified or requested since its last build began.
        var isOwed = false
        /// Whether a person used it since its last build began.
        var wasUsed = false
        /// Whether its last build failed.
        var hasFailed = false
        /// Whether the lock stopped its last build, whose cost was already spent.
        var isPaid = false
        /// Whether its last build did not end well, and its reasons are still owed.
        var mayRepeat = false
        /// The date at which its policy asks for a reload.
        var policy: Date?
    }

    let limit: Int
    private(set) var accounts: [WidgetInfo: Account] = [:]
    private(set) var violations: [String] = []
    private(set) var counted = 0
    private(set) var withheld = 0
    private(set) var resumed = 0
    private var last = Date.distantPast

    init(limit: Int) { self.limit = limit }

    /// Moves every date that the clock now places in the future to the present.
    mutating func clockStands(at now: Date) {
        if now < last {
            accounts = accounts.mapValues { account in
                var account = account
                account.spent = account.spent.map { min($0, now) }
                return account
            }
        }
        last = now
    }

    mutating func place(_ widgets: [WidgetInfo]) {
        accounts = accounts.filter { widgets.contains($0.key) }
        for info in widgets where accounts[info] == nil { accounts[info] = Account() }
    }

    mutating func owe(_ info: WidgetInfo) { accounts[info]?.isOwed = true }

    mutating func use(_ info: WidgetInfo) {
        accounts[info]?.isOwed = true
        accounts[info]?.wasUsed = true
    }

    /// - Parameter isOvertaken: Whether the lock stopped the build.
    mutating func fail(_ info: WidgetInfo, isOvertaken: Bool) {
        guard var account = accounts[info] else { return }
        account.hasFailed = !isOvertaken
        if isOvertaken { account.isPaid = true }
        account.isOwed = true
        account.mayRepeat = true
        accounts[info] = account
    }

    mutating func finish(_ info: WidgetInfo, policy: Date?) {
        accounts[info]?.hasFailed = false
        accounts[info]?.mayRepeat = false
        accounts[info]?.policy = policy
    }

    /// Restarts the process: requests are forgotten, spent reloads are not.
    mutating func restart(policies: [WidgetInfo: Date]) {
        accounts = accounts.mapValues { Account(spent: $0.spent) }
        for (info, date) in policies { accounts[info]?.policy = date }
    }

    func remaining(_ info: WidgetInfo) -> Int {
        max(0, limit - (accounts[info]?.spent.count { last < $0 + 86_400 } ?? 0))
    }

    /// Whether the policy is a reason to build the widget.
    func policyAsks(_ info: WidgetInfo) -> Bool {
        accounts[info]?.policy.map { $0 <= last } ?? false
    }

    mutating func start(_ reload: ReloadScheduler.Reload, hasTimeline: Bool) {
        let info = reload.widget
        guard var account = accounts[info] else {
            violations.append("\(info) is built, but not placed")
            return
        }
        if reload.reasons.contains(.interaction), !account.wasUsed, !account.mayRepeat {
            violations.append("\(info) is built for a person who did not use it")
        }
        if reload.reasons.contains(.placeholder), hasTimeline, !account.mayRepeat {
            violations.append("\(info) is built for want of a timeline that it has")
        }
        if account.isPaid { resumed += 1 }
        let isFree = account.isPaid || reload.reasons.contains(where: \.isExempt)
        if isFree != (reload.budgetsSpent == 0) { violations.append("\(reload) counts wrongly") }
        if !isFree {
            if remaining(info) == 0 { violations.append("\(reload) spends what there is not") }
            account.spent.append(last)
            counted += 1
        }
        account.isOwed = false
        account.wasUsed = false
        account.isPaid = false
        account.policy = nil
        accounts[info] = account
    }

    /// Checks, after the engine has done all it can, that the budgets agree to the reload, and that
    /// no widget waits without a reason.
    mutating func check(_ engine: ReloadEngine) {
        let places =
            engine.settings.buildsMax - engine.records.values.count { $0.build != nil }
        for (info, account) in accounts {
            guard var budget = engine.scheduler.budget(of: info) else {
                violations.append("\(info) has no budget")
                continue
            }
            let left = budget.remaining(now: last)
            if left != remaining(info) {
                violations.append("\(info) has \(left) reloads left, not \(remaining(info))")
            }
            guard let record = engine.records[.timeline(info)], record.cursor != nil,
                record.build == nil, account.isOwed, places > 0,
                engine.canRead(.timeline(info))
            else { continue }
            if account.wasUsed { violations.append("\(info) was used, but waits") }
            guard !account.hasFailed else { continue }
            if left > 0 || account.isPaid {
                violations.append("\(info) is owed a reload, but waits")
            } else {
                withheld += 1
            }
        }
    }
}
