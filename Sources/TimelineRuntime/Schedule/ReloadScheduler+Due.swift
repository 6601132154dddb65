import Foundation

extension ReloadScheduler {
    /// The date at which the next reload is due; `nil` for never. It is in the past when a reload
    /// is already due.
    ///
    /// Unless another method is called or the clock is set back, `due(now:)` returns nothing before
    /// this date, and at least one reload from then on. Any call may change it.
    package var nextDue: Date? {
        var dates: [Date] = []
        dates.reserveCapacity(records.count)
        var exempt: Date?
        for (widget, record) in records where !withheld.contains(widget) {
            guard let date = dueDate(of: record) else { continue }
            dates.append(date)
            if record.hasExemptRequest { exempt = min(exempt ?? date, date) }
        }
        guard let first = dates.min() else { return nil }
        // At most the batch window after the first, whatever the number of those that follow.
        let end = first + settings.batchWindow.asWait
        let batch = dates.lazy.filter { $0 <= end }.max() ?? first
        return min(batch, exempt ?? batch)
    }

    /// Returns the first date at which the rules allow this widget's next reload, regardless of
    /// other widgets; `nil` when none is owed, and while one is in progress.
    func dueDate(of record: Record) -> Date? {
        guard record.running == nil else { return nil }
        let budget = counts ? record.budget.earliestReload : nil
        var due: Date?
        if record.hasExemptRequest {
            due = record.requestedAt
        } else if let interval = record.requests.lazy.map(intervalMin).min() {
            let requested = Self.later(record.requestedAt, record.lastReload.map { $0 + interval })
            due = Self.later(requested, budget)
        }
        if let policy = record.policy {
            due = Self.earlier(Self.later(policyDate(policy, record), budget), due)
        }
        if let retry = record.retry {
            let isFree = retry.isPaid || retry.reasons.contains(where: \.isExempt)
            let date = Self.later(retry.failedAt + retry.wait, isFree ? nil : budget)
            due = Self.earlier(date, due)
        }
        return due
    }

    /// Returns the date at which a policy asks, regardless of the budget.
    func policyDate(_ policy: Policy, _ record: Record) -> Date {
        let interval = settings.policyIntervalMin.asWait
        return Self.later(policy.date, record.lastReload.map { $0 + interval }) + policy.jitter
    }

    /// Whether reloads that are not exempt count towards the budget.
    var counts: Bool { settings.budgetLimit != nil && activity.isEmpty }

    private func intervalMin(_ reason: ReloadReason) -> TimeInterval {
        (reason == .policy ? settings.policyIntervalMin : settings.requestIntervalMin).asWait
    }

    private static func later(_ date: Date, _ other: Date?) -> Date {
        max(date, other ?? date)
    }

    private static func earlier(_ date: Date, _ other: Date?) -> Date {
        min(date, other ?? date)
    }
}

extension TimeInterval {
    /// The interval limited to a range that is safe for arithmetic with dates: 0 if negative or
    /// NaN, and at most 366 days.
    var asWait: TimeInterval {
        self > 0 ? min(self, 366 * 86_400) : 0
    }
}
