/// The log as the answers to posts describe it. A generation ends where the log lost its end; in
/// the next one the same sequence may stand for another change.
struct ChangeHistory {
    /// One change: its sequence, and the time at which it was first sent.
    struct Change {
        let sequence: UInt64
        let sent: Double
    }

    private struct Place: Hashable {
        let generation: Int
        let batch: Int
    }

    private struct Line: Hashable {
        let generation: Int
        let subject: Subject
    }

    private struct Slot: Hashable {
        let generation: Int
        let sequence: UInt64
    }

    private struct Answers {
        /// The highest sequence of the batch.
        let sequence: UInt64
        /// When the first 202 came.
        let time: Double
        /// Whether one of them called the batch new.
        var hasNew: Bool
    }

    private(set) var violations: [Violation] = []
    private(set) var changeCount = 0
    private var firstSent: [Int: Double] = [:]
    /// The highest sequence known when an attempt at a batch ended for the first time.
    private var headAtFirst: [Int: UInt64] = [:]
    /// The most entries of posts in flight.
    private static let answersUnderWayMax: UInt64 = 100
    private var places: [Place: Answers] = [:]
    /// The number of entries that the log keeps; `nil` for all.
    private var keptEntries: UInt64?
    /// The highest sequence so far.
    private var head: UInt64 = 0
    private var occupants: [Slot: (owner: String, subject: Subject?)] = [:]
    private var lines: [Line: [Change]] = [:]

    /// Reads the posts and catalogs of a record.
    init(_ record: Record) {
        var generation = 0
        for entry in record.entries {
            switch entry.event {
            case .posted(let attempt): read(attempt, at: entry.time, generation)
            case .catalog(let sequence): occupy(sequence, generation, by: "a catalog", nil)
            case .logLost: generation += 1
            case .logKeeps(let entries): keptEntries = entries
            default: break
            }
        }
        for line in lines.keys { lines[line]?.sort { $0.sequence < $1.sequence } }
    }

    private mutating func read(_ attempt: PostAttempt, at time: Double, _ generation: Int) {
        firstSent[attempt.batch] = min(firstSent[attempt.batch] ?? .infinity, attempt.sent)
        if headAtFirst[attempt.batch] == nil { headAtFirst[attempt.batch] = head }
        guard case .accepted(let accepted, let duplicates, let sequence) = attempt.outcome else {
            return
        }
        let name = attempt.name
        let count = attempt.subjects.count
        let place = Place(generation: generation, batch: attempt.batch)
        guard (accepted, duplicates) == (count, 0) || (accepted, duplicates) == (0, count) else {
            // The log forgets entries one at a time, and the rest of a batch is known still.
            if accepted > 0, accepted + duplicates == count, mayBeForgotten(firstOf: place, count) {
                for index in 0..<accepted {
                    record(
                        attempt, index, at: sequence - UInt64(accepted - 1 - index), generation)
                }
                return
            }
            add(.splitBatch, "\(name): \(accepted) accepted, \(duplicates) duplicates")
            return
        }
        if let known = places[place], accepted == 0 || !mayBeForgotten(known.sequence) {
            // Of two attempts at a time the one that is new may be answered after the duplicate.
            let isLate = !known.hasNew && attempt.sent < known.time
            if accepted > 0, !isLate {
                add(.falseAccepted, "\(name) was accepted at \(known.sequence), then lost")
            }
            if known.sequence != sequence {
                add(
                    .falseAccepted,
                    "\(name) moved from sequence \(known.sequence) to \(sequence)")
            }
            if accepted > 0 { places[place]?.hasNew = true }
            return
        }
        guard sequence >= UInt64(count) else {
            add(.doubledSequence, "\(name) got the sequence \(sequence)")
            return
        }
        places[place] = Answers(sequence: sequence, time: time, hasNew: accepted > 0)
        changeCount += count
        for index in attempt.subjects.indices {
            record(attempt, index, at: sequence - UInt64(count - 1 - index), generation)
        }
    }

    /// Records one event of a batch that the log has at a sequence.
    private mutating func record(
        _ attempt: PostAttempt, _ index: Int, at sequence: UInt64, _ generation: Int
    ) {
        let subject = attempt.subjects[index]
        occupy(sequence, generation, by: attempt.name, subject)
        lines[Line(generation: generation, subject: subject), default: []].append(
            Change(sequence: sequence, sent: firstSent[attempt.batch] ?? attempt.sent))
    }

    /// Whether the log may have forgotten the first event of a batch.
    private func mayBeForgotten(firstOf place: Place, _ count: Int) -> Bool {
        if let known = places[place] {
            return mayBeForgotten(known.sequence - min(known.sequence, UInt64(count - 1)))
        }
        // An attempt without an answer may have been taken at once, or before others whose answers
        // came sooner.
        guard let before = headAtFirst[place.batch] else { return false }
        return mayBeForgotten(before - min(before, Self.answersUnderWayMax))
    }

    /// Whether the log may have forgotten the events of the entry at a sequence.
    private func mayBeForgotten(_ sequence: UInt64) -> Bool {
        keptEntries.map { sequence + $0 <= head } ?? false
    }

    private mutating func occupy(
        _ sequence: UInt64, _ generation: Int, by owner: String, _ subject: Subject?
    ) {
        let slot = Slot(generation: generation, sequence: sequence)
        head = max(head, sequence)
        if let other = occupants[slot] {
            add(.doubledSequence, "\(sequence) was assigned to \(other.owner) and to \(owner)")
        }
        occupants[slot] = (owner, subject)
    }

    private mutating func add(_ kind: Violation.Kind, _ text: String) {
        violations.append(Violation(kind: kind, text: text))
    }

    func latest(_ subject: Subject, upTo sequence: UInt64, _ generation: Int) -> Change? {
        guard let line = lines[Line(generation: generation, subject: subject)] else { return nil }
        var (low, high) = (0, line.count)
        while low < high {
            let middle = (low + high) / 2
            if line[middle].sequence <= sequence { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : line[low - 1]
    }

    func subject(at sequence: UInt64, _ generation: Int) -> Subject? {
        occupants[Slot(generation: generation, sequence: sequence)]?.subject
    }
}
