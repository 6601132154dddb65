import DequeModule
import GatewayCore

extension BatchWriter {
    /// Begins the next batch and reading if nothing is in flight and something waits.
    mutating func beginBatch(at now: Int64) {
        guard case .ready = phase else { return }
        if let server = mustFence {
            mustFence = nil
            phase = .fencing(server)
            return send([.fence], at: now)
        }
        if mustDelete, !hasDeleted {
            hasDeleted = true
            phase = .deleting
            return send([.deleteRemoved(Self.deletedRows)], at: now)
        }
        hasDeleted = false
        var requests: [WriteRequest] = []
        if let request = readings.begin(limit: limits.registrations) {
            requests = [request, .readDurability(notifies: false)]
            phase = .reading
        }
        let entries = removeNextEntries()
        if !entries.isEmpty {
            let batch = PendingBatch(entries)
            requests.append(.probe(batch.probe))
            phase = .probing(batch)
        }
        if !requests.isEmpty {
            send(requests, at: now)
        } else if mustDelete {
            beginBatch(at: now)
        } else {
            announce(at: now)
        }
    }

    /// Removes and returns the writes of the next batch.
    private mutating func removeNextEntries() -> [PendingBatch.Entry] {
        var entries: [PendingBatch.Entry] = []
        var (records, registrations, bytes) = (0, 0, 0)
        let takesOthers = !wasRaced || retried.isEmpty
        wasRaced = false
        while records < limits.changes, bytes < limits.bytes, takesOthers || !retried.isEmpty,
            let next = removeNextEntry()
        {
            records += next.write.recordCount
            registrations += next.write.registration == nil ? 0 : 1
            bytes += next.write.byteCount
            guard
                entries.isEmpty
                    || records <= limits.changes && bytes <= limits.bytes
                        && registrations <= limits.registrations
            else {
                retried.insert(next, at: 0)
                break
            }
            entries.append(next)
        }
        return entries
    }

    /// Removes and returns what is written next: a write that was on its way, or the next of
    /// the queue that still waits.
    private mutating func removeNextEntry() -> PendingBatch.Entry? {
        if !retried.isEmpty { return retried.removeFirst() }
        while let next = waiting.popFirst()?.element {
            if tickets.remove(next.write.ticket) != nil { return next }
        }
        return nil
    }

    /// Completes every write and reading whose deadline has passed.
    mutating func expire(at now: Int64) {
        while let first = deadlines.first, first.deadline <= now || !tickets.contains(first.ticket)
        {
            deadlines.removeFirst()
            if tickets.remove(first.ticket) != nil {
                complete(first.ticket, .refused(.unavailable))
            }
        }
        for ticket in readings.expire(at: now) {
            actions.append(.completeReading(ticket: ticket, .refused(.unavailable)))
        }
        for entry in retried where entry.deadline <= now {
            complete(entry.write.ticket, .refused(.unavailable))
        }
        retried.removeAll { $0.deadline <= now }
        var expired: [UInt64] = []
        switch phase {
        case .probing(var batch):
            for ticket in batch.expire(at: now) { complete(ticket, .refused(.unavailable)) }
            phase = .probing(batch)
        case .confirming(var batch, let appended):
            expired = batch.expire(at: now)
            phase = .confirming(batch, appended: appended)
        case .finding(var batch, let identity, let found):
            expired = batch.expire(at: now)
            phase = .finding(batch, identity, found)
        default: expired = unresolved?.expire(at: now) ?? []
        }
        for ticket in expired { complete(ticket, .unknown) }
    }
}
