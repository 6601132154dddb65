import Foundation
import WidgetModel

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

    /// Whether nothing but time is in the way: it is registered, its last build is over, and its
    /// provider can read what it needs.
    private func isBuildable(_ item: Archived, _ record: EngineRecord) -> Bool {
        (record.cursor != nil || wasUsed(item, record) || isUnasked(item) && registered != nil)
            && record.build == nil && !record.isRemoved && canRead(item) && !isInteracting(item)
    }

    /// Whether a build for something else would be one too many: the intent asks for one.
    private func isInteracting(_ item: Archived) -> Bool {
        guard case .timeline(let info) = item, let until = interacting[info] else { return false }
        return until > now
    }

    /// A person who used a widget gets a reload, also while the gateway has forgotten the client.
    private func wasUsed(_ item: Archived, _ record: EngineRecord) -> Bool {
        guard record.hasTimeline, case .timeline(let info) = item else { return false }
        return scheduler.isOwed(info, .interaction)
    }

    /// Whether the lock lets a provider read its files.
    func canRead(_ item: Archived) -> Bool {
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

    private mutating func begin(_ item: Archived, _ reload: ReloadScheduler.Reload?) -> Bool {
        guard var record = records[item] else { return false }
        // Nobody tells of a set that is not registered: what it is now is as new as what was heard.
        if record.cursor == nil, isUnasked(item) { record.cursor = heard }
        let start = record.cursor.map { max($0, heard ?? $0, record.reached ?? $0) }
        record.build = .init(
            start: start, wasStale: record.isStale, isTold: isTold(item), reload: reload)
        record.isStale = false
        record.retryAt = nil
        record.reached = nil
        records[item] = record
        return true
    }

    /// Whether nothing is being built or about to be. What waits for its time, be it for a budget,
    /// is told of later.
    var isSettled: Bool { records.values.allSatisfy { $0.build == nil } }

    mutating func rebuilt(_ info: WidgetInfo, _ milliseconds: Int, _ reloadDate: Date?) {
        guard let reload = finishBuild(of: .timeline(info)) else { return }
        if let reload {
            scheduler.finished(reload, reloadDate: reloadDate, now: date, using: &generator)
        }
        reports.rebuilt.append(.init(widget: info, milliseconds: milliseconds))
        if reports.rebuilt.count > Acknowledgement.entriesMax { reports.rebuilt.removeFirst() }
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
        // A set that changed is told by registering it, with the cursor it was built at.
        if isRegistered {
            if !reports.recommendations.contains(kind) { reports.recommendations.append(kind) }
        } else if case .waiting = registering {
            registering = .idle
        }
    }

    /// - Returns: What the scheduler is to be told the end of; `nil` when the build is not one to
    ///   tell of.
    private mutating func finishBuild(of item: Archived) -> ReloadScheduler.Reload?? {
        guard var record = records[item], let build = record.build else { return nil }
        guard !forgetIfRemoved(item) else { return nil }
        record.build = nil
        record.backoff = nil
        record.hasTimeline = true
        record.isStale = record.isStale || build.isOutdated
        if let start = build.start, let cursor = record.cursor {
            // Sent since, but not concerning it: what is built is as new as the newest id.
            let reached = build.isOutdated || !build.isTold ? start : max(start, heard ?? start)
            record.cursor = max(cursor, reached)
            record.awaitsBuild = false
        }
        records[item] = record
        mustSave = true
        return .some(build.reload)
    }

    mutating func buildFailed(_ info: WidgetInfo, _ reason: String) {
        let item = Archived.timeline(info)
        guard var record = records[item], let build = record.build, !forgetIfRemoved(item) else {
            return
        }
        // One that the lock overtook has not failed: it is repeated when its files can be read.
        var wait = Duration.zero
        if !build.isOvertaken {
            wait = waitAfterFailure(of: &record)
            reports.failed.append(.init(widget: info, reason: reason))
            if reports.failed.count > Acknowledgement.entriesMax { reports.failed.removeFirst() }
        }
        record.build = nil
        record.isStale = record.isStale || build.wasStale || build.isOutdated
        // What it shows is as old as before, and that was new enough.
        if !record.isStale, let cursor = record.cursor {
            record.cursor = max(cursor, heard ?? cursor)
        }
        records[item] = record
        guard let reload = build.reload else { return }
        if build.isOvertaken {
            scheduler.interrupted(reload, now: date)
        } else {
            scheduler.failed(reload, retryAfter: wait / .seconds(1), now: date)
        }
    }

    /// The set stays as it is, and owed: it was asked for because it may be old.
    mutating func recommendFailed(_ kind: String) {
        let item = Archived.recommendations(kind: kind)
        guard var record = records[item], let build = record.build, !forgetIfRemoved(item) else {
            return
        }
        record.build = nil
        record.isStale = true
        // What is not registered holds nothing back, and claims nothing when it is asked for again.
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

    /// A build that ended after its widget was removed leaves nothing.
    private mutating func forgetIfRemoved(_ item: Archived) -> Bool {
        guard records[item]?.isRemoved == true else { return false }
        records[item] = nil
        order.removeAll { $0 == item }
        return true
    }
}
