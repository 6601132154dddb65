import WidgetModel

extension ReloadEngine {
    mutating func opened(_ attempt: Int, resumedFrom resumed: Cursor?) {
        guard isCurrent(attempt: attempt), let asked = link.requestedCursor else { return }
        wasRegisteredOtherwise = false
        link.resumedCursor = resumed
        guard let resumed, resumed < asked || Self.isOtherLog(resumed, than: asked) else {
            link.receivedCursor = max(link.receivedCursor ?? asked, asked)
            return
        }
        link.receivedCursor = resumed
        mustSave = true
        if resumed.epoch == asked.epoch {
            // The gateway repeats some notifications. A lower cursor claims less, so it is safe.
            for (item, record) in records {
                guard let cursor = record.cursor, cursor > resumed else { continue }
                records[item]?.cursor = resumed
                records[item]?.knownCursor = nil
                if let start = record.build?.start {
                    records[item]?.build?.start = min(start, resumed)
                }
            }
        } else {
            forgetOtherLogs(than: resumed)
            // The resumption does not cover items that got a cursor of this log after the request
            // was sent.
            link.receivedCursor = cursor ?? resumed
        }
    }

    /// Discards every cursor that does not belong to the log of `cursor`: the gateway's log lost
    /// its tail, or was restored or wiped, so its notifications do not cover such a cursor.
    /// Rebuilds the items that had one.
    mutating func forgetOtherLogs(than cursor: Cursor) {
        link.logEpoch = nil
        for (item, record) in records {
            if let reached = record.knownCursor, Self.isVoid(reached, beside: cursor) {
                records[item]?.knownCursor = nil
            }
            guard let old = record.cursor else { continue }
            if Self.isVoid(old, beside: cursor) {
                records[item]?.cursor = cursor
                rebuildAnew(item)
            } else if let start = record.build?.start, Self.isVoid(start, beside: cursor) {
                records[item]?.build?.start = old
            }
        }
        // This log has not sent anything older than this cursor.
        if let received = link.receivedCursor, Self.isVoid(received, beside: cursor) {
            link.receivedCursor = appliedCursor.map { min($0, cursor) } ?? cursor
        }
    }

    mutating func rebuildAnew(_ item: EngineItem) {
        records[item]?.awaitsBuild = true
        records[item]?.knownCursor = nil
        records[item]?.build?.start = nil
        markStale(item)
        mustSave = true
    }

    private static func isOtherLog(_ one: Cursor, than other: Cursor) -> Bool {
        one.epoch.ordinal == other.epoch.ordinal && one.epoch != other.epoch
    }

    /// Whether a cursor is void beside one of the gateway's present log. Two logs with equally many
    /// epochs do not continue one another, and the number of epochs only grows.
    private static func isVoid(_ cursor: Cursor, beside other: Cursor) -> Bool {
        cursor.epoch.ordinal > other.epoch.ordinal || isOtherLog(cursor, than: other)
    }

    mutating func heardOf(_ notification: ReloadNotification, _ attempt: Int) {
        guard isCurrent(attempt: attempt) else { return }
        link.backoff.succeeded()
        link.verificationBackoff.succeeded()
        if isOwn(notification) {
            acks.owedSequence = max(acks.owedSequence ?? 0, notification.sequence)
        }
        link.heardSequence = max(link.heardSequence ?? 0, notification.sequence)
        for item in order where item.isConcerned(by: notification) {
            if !holds(item, notification) { markStale(item) }
        }
    }

    /// Returns whether this process acknowledges the notification.
    private func isOwn(_ notification: ReloadNotification) -> Bool {
        guard let own = settings.ownKinds, !notification.all else { return true }
        let types = notification.activities.map(\.type)
        let named =
            notification.reload.map(\.kind) + notification.recommendations
            + notification.relevance + notification.controls + types
        return !own.isDisjoint(with: named)
    }

    /// Returns whether the timeline that is built, or being built, already includes the change that
    /// a notification reports: its build began after an equal or later sequence was heard on this
    /// connection, or the build's cursor, as after an interaction, covers the sequence in the same
    /// log. Sets are excluded: the gateway repeats them until they are acknowledged by name.
    private mutating func holds(_ item: EngineItem, _ notification: ReloadNotification) -> Bool {
        guard case .timeline = item, let record = records[item], !record.isStale,
            record.build?.isOutdated != true, !notification.all
        else { return false }
        let (cursor, sequence) =
            record.build.map { ($0.start, $0.heardSequence) }
            ?? (record.cursor, record.builtSequence)
        let isHeard = sequence.map { notification.sequence <= $0 } ?? false
        let isInLog =
            cursor.map {
                $0.epoch == link.logEpoch && notification.sequence <= $0.sequence
            } ?? false
        guard isHeard || isInLog else { return false }
        // If the build fails, the change it was to cover makes the timeline stale.
        records[item]?.build?.wasStale = true
        return true
    }

    mutating func idMoved(_ attempt: Int, to cursor: Cursor) {
        guard isCurrent(attempt: attempt) else { return }
        link.backoff.succeeded()
        link.receivedCursor = cursor
        // The cursor that the gateway resumed from may belong to an earlier log.
        if cursor != link.requestedCursor, cursor != link.resumedCursor {
            link.logEpoch = cursor.epoch
        }
        for (item, record) in records where record.isFresh && isTold(item) {
            if let old = record.cursor, old < cursor { records[item]?.cursor = cursor }
        }
        if now - lastSave >= settings.idleSaveInterval { mustSave = true }
    }

    /// Discards everything after the unverified notification: the same cursor is requested again
    /// later.
    mutating func verificationFailed(_ attempt: Int) {
        guard isCurrent(attempt: attempt) else { return }
        link.state = .waiting(until: now + link.verificationBackoff.next(using: &generator))
    }

    mutating func ended(_ attempt: Int, _ ending: EngineEvent.Ending) {
        guard isCurrent(attempt: attempt) else { return }
        switch ending {
        case .polled:
            link.hasPolled = true
            link.state = .waiting(until: now + settings.pollInterval)
        case .closed:
            link.state = .waiting(until: now + link.backoff.next(using: &generator))
        case .refused(.otherRegistration(let digest)) where !wasRegisteredOtherwise:
            wasRegisteredOtherwise = true
            registeredOtherwise(digest)
            link.state = .idle
        case .refused(let refusal):
            if case .otherRegistration(let digest) = refusal { registeredOtherwise(digest) }
            link.state = .waiting(until: now + wait(after: refusal, \.link.backoff))
            if refusal == .unknownClient { registrationLost() }
        }
    }

    mutating func orderConnection() {
        guard registered != nil, !mustReadRegistration, let cursor else { return }
        switch link.state {
        case .active: return
        case .waiting(let until) where until > now: return
        case .idle, .waiting: break
        }
        link.attempt += 1
        link.state = .active
        link.requestedCursor = cursor
        link.resumedCursor = nil
        link.logEpoch = nil
        link.heardSequence = nil
        for item in order {
            records[item]?.builtSequence = nil
            records[item]?.build?.heardSequence = nil
        }
        actions.append(.connect(attempt: link.attempt, since: cursor))
    }
}
