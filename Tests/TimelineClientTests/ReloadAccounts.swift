import Foundation

@testable import TimelineClient

/// The plainest account of what placed widgets are owed and have spent: lists that are never
/// shortened but by what the rules say, beside an engine that must agree with them at every moment.
struct ReloadAccounts {
    /// Of one placed widget.
    struct Account {
        /// When each reload that counts began.
        var spent: [Date] = []
        /// It was told, or asked for, since its last build began.
        var isOwed = false
        /// A person used it since its last build began.
        var wasUsed = false
        /// Its last build failed.
        var hasFailed = false
        /// The lock overtook its last build, which was spent for.
        var isPaid = false
        /// Its last build did not end well, and what it was for is still owed.
        var mayRepeat = false
        /// When its policy asks.
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

    /// What the clock now places in the future counts as of now.
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

    mutating func fail(_ info: WidgetInfo) { accounts[info]?.hasFailed = true }

    mutating func overtake(_ info: WidgetInfo) {
        accounts[info]?.hasFailed = false
        accounts[info]?.isPaid = true
    }

    mutating func repeatLater(_ info: WidgetInfo) {
        accounts[info]?.isOwed = true
        accounts[info]?.mayRepeat = true
    }

    mutating func finish(_ info: WidgetInfo, policy: Date?) {
        accounts[info]?.hasFailed = false
        accounts[info]?.mayRepeat = false
        accounts[info]?.policy = policy
    }

    /// The process died: what was asked for is forgotten, what was spent is not.
    mutating func restart(policies: [WidgetInfo: Date]) {
        accounts = accounts.mapValues { Account(spent: $0.spent) }
        for (info, date) in policies { accounts[info]?.policy = date }
    }

    func remaining(_ info: WidgetInfo) -> Int {
        max(0, limit - (accounts[info]?.spent.count { last < $0 + 86_400 } ?? 0))
    }

    /// Whether the policy is a reason to build.
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

    /// After everything the engine had to do: the budgets agree to the reload, and nobody waits for
    /// nothing.
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
