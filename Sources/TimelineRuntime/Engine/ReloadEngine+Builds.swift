import Foundation
import WidgetModel
import WidgetViews

extension ReloadEngine {
    mutating func orderBuilds() {
        scheduler.withheld = Set(
            records.compactMap { item, record in
                guard case .timeline(let info) = item, !isBuildable(item, record) else {
                    return nil
                }
                return info
            })
        var places = settings.buildsMax - records.values.count { $0.build != nil }
        for reload in scheduler.due(now: date, limit: places) {
            guard begin(.timeline(reload.widget), reload) else { continue }
            places -= 1
            if reload.budgetsSpent > 0 { mustSaveBudgets = true }
            actions.append(.build(reload.widget))
        }
        for item in order where places > 0 {
            guard case .recommendations(let kind) = item, let record = records[item],
                record.isStale, record.retryAt ?? now <= now, isBuildable(item, record),
                begin(item, nil)
            else { continue }
            places -= 1
            actions.append(.recommend(kind: kind))
        }
    }

    /// Returns whether only a due date can delay the build: the item is registered and not being
    /// built, and its provider can read its files.
    private func isBuildable(_ item: EngineItem, _ record: EngineRecord) -> Bool {
        (record.cursor != nil || wasUsed(item, record) || isUnasked(item) && registered != nil)
            && record.build == nil && !record.isRemoved && canRead(item) && !isInteracting(item)
    }

    /// Returns whether an intent of the widget is being performed. Its reload follows when it
    /// returns, so a build for another reason would be superfluous.
    private func isInteracting(_ item: EngineItem) -> Bool {
        guard case .timeline(let info) = item, let until = interacting[info] else { return false }
        return until > now
    }

    /// Returns whether the widget was used and a reload is owed for that, even while the gateway
    /// has forgotten the client.
    private func wasUsed(_ item: EngineItem, _ record: EngineRecord) -> Bool {
        guard record.hasTimeline, case .timeline(let info) = item else { return false }
        return scheduler.isOwed(info, .interaction)
    }

    func canRead(_ item: EngineItem) -> Bool {
        let protection =
            settings.protections[item.kind] ?? .completeUntilFirstUserAuthentication
        return protection.rebuildPermission(while: lock) == .now
    }

    mutating func lockChanged(_ lock: DeviceLock) {
        self.lock = lock
        for (item, record) in records where record.build != nil && !canRead(item) {
            records[item]?.build?.isOvertaken = true
        }
    }

    private mutating func begin(_ item: EngineItem, _ reload: ReloadScheduler.Reload?) -> Bool {
        guard var record = records[item] else { return false }
        // The gateway sends no notifications for a set that is not registered. A set read now is as
        // new as the last notification.
        if record.cursor == nil, isUnasked(item) { record.cursor = link.receivedCursor }
        let start = record.cursor.map {
            max($0, link.receivedCursor ?? $0, record.knownCursor ?? $0)
        }
        record.build = .init(
            start: start, heardSequence: link.heardSequence, wasStale: record.isStale,
            isTold: isTold(item), reload: reload)
        record.isStale = false
        record.retryAt = nil
        record.knownCursor = nil
        records[item] = record
        return true
    }

    /// Whether no build is in progress. Items that wait for their time or a budget are acknowledged
    /// later.
    var isSettled: Bool { records.values.allSatisfy { $0.build == nil } }

    mutating func rebuilt(
        _ info: WidgetInfo, _ milliseconds: Int, _ reloadDate: Date?, isUnchanged: Bool
    ) {
        guard let reload = finishBuild(of: .timeline(info)) else { return }
        if let reload {
            scheduler.finished(reload, reloadDate: reloadDate, now: date, using: &generator)
        }
        guard info.activityID == nil else { return }
        acks.reports.rebuilt.append(
            .init(widget: info, milliseconds: milliseconds, isUnchanged: isUnchanged))
        acks.reports.dropOldest()
    }

    mutating func recommended(_ kind: String, _ items: [RecommendationSet.Item]) {
        guard finishBuild(of: .recommendations(kind: kind)) != nil else { return }
        if let place = unasked.firstIndex(of: kind) {
            unasked.remove(at: place)
            desired.recommendations.append(RecommendationSet(kind: kind, items: items))
        }
        guard let index = desired.recommendations.firstIndex(where: { $0.kind == kind })
        else { return }
        desired.recommendations[index].items = items
        let isRegistered =
            registered?.recommendations.contains { $0.kind == kind && $0.items == items } ?? false
        // A changed set is reported by registering it, with the cursor at which it was built.
        if isRegistered {
            if !acks.reports.recommendations.contains(kind) {
                acks.reports.recommendations.append(kind)
            }
        } else if case .waiting = registering {
            registering = .idle
        }
    }

    /// - Returns: The scheduler's reload that has ended; `nil` as the outer value when the build
    ///   does not count.
    private mutating func finishBuild(of item: EngineItem) -> ReloadScheduler.Reload?? {
        guard var record = records[item], let build = record.build else { return nil }
        guard !forgetIfRemoved(item) else { return nil }
        record.build = nil
        record.backoff = nil
        record.hasTimeline = true
        record.builtSequence = build.heardSequence
        record.isStale = record.isStale || build.isOutdated
        if let start = build.start, let cursor = record.cursor {
            // Later notifications did not concern it, so the built item is as new as the newest id.
            let isBehind = build.isOutdated || !build.isTold
            let reached = isBehind ? start : max(start, link.receivedCursor ?? start)
            record.cursor = max(cursor, reached)
            record.awaitsBuild = false
        }
        records[item] = record
        mustSave = true
        return .some(build.reload)
    }

    mutating func buildFailed(_ info: WidgetInfo, _ reason: String) {
        let item = EngineItem.timeline(info)
        guard var record = records[item], let build = record.build, !forgetIfRemoved(item) else {
            return
        }
        // A build overtaken by the lock has not failed. It is repeated when its files can be read.
        var wait = Duration.zero
        if !build.isOvertaken {
            wait = waitAfterFailure(of: &record)
            if info.activityID == nil {
                acks.reports.failed.append(.init(widget: info, reason: reason))
                acks.reports.dropOldest()
            }
        }
        record.build = nil
        record.isStale = record.isStale || build.wasStale || build.isOutdated
        // The shown timeline is unchanged, and it was current before this build.
        if !record.isStale, let cursor = record.cursor {
            record.cursor = max(cursor, link.receivedCursor ?? cursor)
        }
        records[item] = record
        guard let reload = build.reload else { return }
        if build.isOvertaken {
            scheduler.interrupted(reload, now: date)
        } else {
            scheduler.failed(reload, retryAfter: wait / .seconds(1), now: date)
        }
    }

    /// Keeps the set and asks for it again later: it was requested because it may be outdated.
    mutating func recommendFailed(_ kind: String) {
        let item = EngineItem.recommendations(kind: kind)
        guard var record = records[item], let build = record.build, !forgetIfRemoved(item) else {
            return
        }
        record.build = nil
        record.isStale = true
        // A set that is not registered must not hold the cursor back. It starts without a cursor
        // when it is requested again.
        if isUnasked(item) {
            record.cursor = nil
            record.awaitsBuild = true
        }
        if !build.isOvertaken { record.retryAt = now + waitAfterFailure(of: &record) }
        records[item] = record
    }

    private mutating func waitAfterFailure(of record: inout EngineRecord) -> Duration {
        var backoff =
            record.backoff ?? Backoff(base: settings.buildRetryBase, cap: settings.buildRetryCap)
        defer { record.backoff = backoff }
        return backoff.next(using: &generator)
    }

    /// Discards the record of an item that was removed while it was built; returns whether it was.
    private mutating func forgetIfRemoved(_ item: EngineItem) -> Bool {
        guard records[item]?.isRemoved == true else { return false }
        records[item] = nil
        order.removeAll { $0 == item }
        return true
    }
}
