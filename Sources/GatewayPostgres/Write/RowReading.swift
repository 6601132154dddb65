/// The row of a registration as it was read.
package struct RegistrationRow: Sendable, Equatable {
    package var key: RegistrationKey
    /// The revision, to be named by a write that is decided from this row.
    package var revision: Int64
    /// The content; the day on which the client was last seen is that of any write.
    package var content: RegistrationContent
    /// The push addresses that still belong to the client.
    package var ownTokens: Set<UInt128>
    /// The time of the last write, milliseconds since 1970.
    package var updatedAt: Int64
}

/// A reading of rows on the primary.
package enum RowReading: Sendable, Equatable {
    /// The rows of registrations, at most ``BatchLimits/registrations``, as of a sequence or later:
    /// that of the record that told of them, else 0.
    case rows([RegistrationKey], asOf: Int64)
    /// The keys of an app's registrations with an attribute, by its keyed hash, ordered by the bytes
    /// of the client's id.
    case clients(attribute: UInt128, app: String, after: String, limit: Int32)
}

extension RowReading {
    /// Whether the server accepts the names.
    var hasStorableNames: Bool {
        switch self {
        case .rows(let keys, _): keys.allSatisfy(\.isStorable)
        case .clients(_, let app, let after, _): app.isStorableName && after.isStorableName
        }
    }
}

/// The result of a ``RowReading``.
package enum RowOutcome: Sendable, Equatable {
    /// The rows that exist, durable, as of the head of the log.
    case rows([RegistrationKey: RegistrationRow], head: Int64)
    /// The keys; fewer than the limit are the last.
    case clients([RegistrationKey])
    /// Nothing was read.
    case refused(WriteRefusal)
}

/// The readings that wait and the one in flight: rows of many callers are read together.
struct RowReadings: Sendable {
    private struct Entry {
        let ticket: UInt64
        let reading: RowReading
        let deadline: Int64
        /// The answer; it is given once the settings were read after it.
        var outcome: RowOutcome?

        var keys: [RegistrationKey] {
            if case .rows(let keys, _) = reading { keys } else { [] }
        }
    }

    private var waiting: [Entry] = []
    private var inFlight: [Entry] = []
    /// The rows that wait; a listing counts as one.
    private var waitingRows = 0

    /// Whether a request is in flight, even if all of its readings have expired.
    private(set) var isInFlight = false

    /// The earliest deadline; readings are kept in the order of their deadlines.
    var nextDeadline: Int64? {
        [waiting.first?.deadline, inFlight.first?.deadline].compactMap { $0 }.min()
    }

    /// Adds a reading; returns why it is refused.
    mutating func append(
        _ reading: RowReading, ticket: UInt64, deadline: Int64, limits: BatchLimits
    ) -> WriteRefusal? {
        let entry = Entry(ticket: ticket, reading: reading, deadline: deadline)
        guard entry.keys.count <= limits.registrations else { return .tooLarge }
        guard reading.hasStorableNames else { return .invalidName }
        guard waitingRows + max(1, entry.keys.count) <= limits.pendingPosts else { return .busy }
        waitingRows += max(1, entry.keys.count)
        waiting.append(entry)
        return nil
    }

    /// Returns the request for the next readings; `nil` when none waits.
    mutating func begin(limit: Int) -> WriteRequest? {
        guard !isInFlight, let first = waiting.first else { return nil }
        if case .clients = first.reading {
            take(1)
            return .read(first.reading)
        }
        var keys: [RegistrationKey] = []
        var count = 0
        for entry in waiting {
            guard case .rows(let more, _) = entry.reading, keys.count + more.count <= limit else {
                break
            }
            keys += more
            count += 1
        }
        take(count)
        return .read(.rows(keys, asOf: 0))
    }

    private mutating func take(_ count: Int) {
        isInFlight = true
        inFlight = Array(waiting.prefix(count))
        waiting.removeFirst(count)
        waitingRows -= inFlight.reduce(0) { $0 + max(1, $1.keys.count) }
    }

    /// Handles the answer to the request in flight.
    mutating func receive(_ outcome: RowOutcome) {
        for index in inFlight.indices {
            switch (inFlight[index].reading, outcome) {
            case (.rows(let keys, let sequence), .rows(let rows, let head)):
                // An applied record is visible on the primary, unless its history was lost.
                inFlight[index].outcome =
                    head >= sequence
                    ? .rows(rows.filter { keys.contains($0.key) }, head: head)
                    : .refused(.unavailable)
            default: inFlight[index].outcome = outcome
            }
        }
    }

    /// Removes and returns the readings in flight with their outcomes, which are durable.
    mutating func complete() -> [(ticket: UInt64, outcome: RowOutcome)] {
        defer { (inFlight, isInFlight) = ([], false) }
        return inFlight.map { ($0.ticket, $0.outcome ?? .refused(.unavailable)) }
    }

    /// Has the readings in flight read again: the connection ended.
    mutating func restart() {
        waitingRows += inFlight.reduce(0) { $0 + max(1, $1.keys.count) }
        waiting = inFlight + waiting
        (inFlight, isInFlight) = ([], false)
    }

    /// Removes and returns those whose deadline has passed.
    mutating func expire(at now: Int64) -> [UInt64] {
        guard let nextDeadline, nextDeadline <= now else { return [] }
        let expired = (inFlight + waiting).filter { $0.deadline <= now }.map(\.ticket)
        for entry in waiting where entry.deadline <= now {
            waitingRows -= max(1, entry.keys.count)
        }
        waiting.removeAll { $0.deadline <= now }
        inFlight.removeAll { $0.deadline <= now }
        return expired
    }
}
