import WidgetModel

extension ReloadEngine {
    mutating func orderBuilds() {
        var places = settings.buildsMax - buildsInFlight
        for item in order where places > 0 {
            guard var record = records[item], let cursor = record.cursor, !record.isRemoved else {
                continue
            }
            switch record.phase {
            case .stale: break
            case .failed(let retryAt) where retryAt <= now: break
            case .fresh, .building, .failed: continue
            }
            record.phase = .building(start: max(cursor, heard ?? cursor), again: false)
            records[item] = record
            places -= 1
            switch item {
            case .timeline(let info): actions.append(.build(info))
            case .recommendations(let kind): actions.append(.recommend(kind: kind))
            }
        }
    }

    private var buildsInFlight: Int {
        records.values.count { if case .building = $0.phase { true } else { false } }
    }

    /// Whether nothing is being built or could be.
    var isSettled: Bool {
        records.values.allSatisfy { record in
            switch record.phase {
            case .building: false
            case .stale: record.cursor == nil
            case .failed(let retryAt): retryAt > now
            case .fresh: true
            }
        }
    }

    mutating func rebuilt(_ info: WidgetInfo, _ milliseconds: Int) {
        guard finishBuild(of: .timeline(info)) else { return }
        reports.rebuilt.append(.init(widget: info, milliseconds: milliseconds))
        if reports.rebuilt.count > Acknowledgement.entriesMax { reports.rebuilt.removeFirst() }
    }

    mutating func recommended(_ kind: String, _ items: [RecommendationSet.Item]) {
        guard finishBuild(of: .recommendations(kind: kind)),
            let index = desired.recommendations.firstIndex(where: { $0.kind == kind })
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

    /// - Returns: Whether the build is one to tell of.
    private mutating func finishBuild(of item: Archived) -> Bool {
        guard var record = records[item], case .building(let start, let again) = record.phase else {
            return false
        }
        if record.isRemoved {
            records[item] = nil
            order.removeAll { $0 == item }
            return false
        }
        record.backoff = nil
        record.phase = again ? .stale : .fresh
        if let start, let cursor = record.cursor {
            // Sent since, but not concerning it: what is built is as new as the newest id.
            let reached = again ? start : max(start, heard ?? start)
            record.cursor = max(cursor, reached)
            record.awaitsBuild = false
        }
        records[item] = record
        mustSave = true
        return true
    }

    mutating func buildFailed(_ info: WidgetInfo, _ reason: String) {
        let item = Archived.timeline(info)
        guard var record = records[item], case .building = record.phase else { return }
        if record.isRemoved {
            records[item] = nil
            order.removeAll { $0 == item }
            return
        }
        var backoff =
            record.backoff
            ?? Backoff(base: settings.buildRetryBase, cap: settings.buildRetryCap)
        let wait = backoff.next(using: &generator)
        record.backoff = backoff
        record.phase = record.cursor == nil ? .stale : .failed(retryAt: now + wait)
        records[item] = record
        reports.failed.append(.init(widget: info, reason: reason))
        if reports.failed.count > Acknowledgement.entriesMax { reports.failed.removeFirst() }
    }
}
