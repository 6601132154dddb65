/// The log as the answers to posts describe it.
///
/// A generation ends where the log lost its end; in the next one the same sequence may stand for
/// another change.
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

    private(set) var violations: [Violation] = []
    private(set) var changeCount = 0
    private var firstSent: [Int: Double] = [:]
    /// The highest sequence of each batch.
    private var places: [Place: UInt64] = [:]
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
            case .posted(let attempt): read(attempt, generation)
            case .catalog(let sequence): occupy(sequence, generation, by: "a catalog", nil)
            case .logLost: generation += 1
            case .logKeeps(let entries): keptEntries = entries
            default: break
            }
        }
        for line in lines.keys { lines[line]?.sort { $0.sequence < $1.sequence } }
    }

    private mutating func read(_ attempt: PostAttempt, _ generation: Int) {
        firstSent[attempt.batch] = min(firstSent[attempt.batch] ?? .infinity, attempt.sent)
        guard case .accepted(let accepted, let duplicates, let sequence) = attempt.outcome else {
            return
        }
        let name = "batch \(attempt.batch) of \(attempt.subjects.count)"
        let count = attempt.subjects.count
        guard (accepted, duplicates) == (count, 0) || (accepted, duplicates) == (0, count) else {
            add(.splitBatch, "\(name) was answered \(accepted) accepted, \(duplicates) duplicates")
            return
        }
        let place = Place(generation: generation, batch: attempt.batch)
        if let known = places[place], accepted == 0 || !mayBeForgotten(known) {
            if accepted > 0 {
                add(.falseAccepted, "\(name) was answered 202 at \(known), then lost")
            }
            if known != sequence {
                add(.falseAccepted, "\(name) moved from sequence \(known) to \(sequence)")
            }
            return
        }
        guard sequence >= UInt64(count) else {
            add(.doubledSequence, "\(name) was answered the sequence \(sequence)")
            return
        }
        places[place] = sequence
        changeCount += count
        for (index, subject) in attempt.subjects.enumerated() {
            let own = sequence - UInt64(count - 1 - index)
            occupy(own, generation, by: name, subject)
            lines[Line(generation: generation, subject: subject), default: []].append(
                Change(sequence: own, sent: firstSent[attempt.batch] ?? attempt.sent))
        }
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
            add(.doubledSequence, "\(sequence) was given to \(other.owner) and to \(owner)")
        }
        occupants[slot] = (owner, subject)
    }

    private mutating func add(_ kind: Violation.Kind, _ text: String) {
        violations.append(Violation(kind: kind, text: text))
    }

    /// The latest change of a subject up to a sequence.
    func latest(_ subject: Subject, upTo sequence: UInt64, _ generation: Int) -> Change? {
        guard let line = lines[Line(generation: generation, subject: subject)] else { return nil }
        var (low, high) = (0, line.count)
        while low < high {
            let middle = (low + high) / 2
            if line[middle].sequence <= sequence { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : line[low - 1]
    }

    /// The subject of the change at a sequence.
    func subject(at sequence: UInt64, _ generation: Int) -> Subject? {
        occupants[Slot(generation: generation, sequence: sequence)]?.subject
    }
}
