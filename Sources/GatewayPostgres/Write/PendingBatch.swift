/// A batch on its way: the writes in it, and after the probe what is written of them.
struct PendingBatch: Sendable {
    /// A write with the time at which it was promised an outcome.
    struct Entry: Sendable {
        let write: LogWrite
        let deadline: Int64
    }

    /// The writes as they were decided, also those whose deadline has passed since.
    private let entries: [Entry]
    /// The tickets of the writes that wait no more.
    private var expired: Set<UInt64> = []
    /// The decisions, by ticket.
    private var decisions: [UInt64: BatchBuilder.Decision] = [:]
    /// The call that was sent; `nil` before the probe, or when nothing is new.
    private(set) var call: AppendCall?

    /// The earliest deadline of a write that waits.
    private(set) var nextDeadline: Int64?

    init(_ entries: [Entry]) {
        self.entries = entries
        nextDeadline = entries.lazy.map(\.deadline).min()
    }

    /// The writes that wait for an outcome.
    var waiting: [Entry] { entries.filter { !expired.contains($0.write.ticket) } }

    /// The keys to look up.
    var probe: Probe {
        var probe = Probe()
        var apps: Set<String> = []
        for entry in entries {
            if apps.insert(entry.write.app).inserted { probe.apps.append(entry.write.app) }
            switch entry.write.content {
            case .changes(let changes): probe.events += changes.compactMap(\.key)
            case .registration(let write):
                probe.registrations.append(write.key)
                probe.tokens += write.content?.tokens ?? []
            case .catalog, .removal, .reload: break
            }
        }
        return probe
    }

    /// Decides every write by what the log has, and prepares the call with what is new.
    ///
    /// - Parameter result: The answer to ``probe``.
    mutating func decide(
        by result: ProbeResult, generation: Int64, using generator: inout some RandomNumberGenerator
    ) {
        var builder = BatchBuilder(result, generation: generation, using: &generator)
        decisions = [:]
        for entry in entries { decisions[entry.write.ticket] = builder.add(entry.write) }
        call = builder.call.count > 0 ? builder.call : nil
    }

    /// Whether an app is removed in this batch.
    var removesApp: Bool { call?.catalogs.contains { $0.payload == nil } ?? false }

    /// Returns the outcome of every write that waits.
    ///
    /// - Parameter last: The last sequence of the batch; ignored when nothing was written.
    /// - Returns: The outcomes in the order of the writes.
    func outcomes(last: Int64) -> [(ticket: UInt64, outcome: WriteOutcome)] {
        let first = last - (call?.count ?? 0)
        // Of equal keys only the first is written; the others are its duplicates.
        var written: Set<Int32> = []
        var outcomes: [(ticket: UInt64, outcome: WriteOutcome)] = []
        for entry in entries {
            guard let decision = decisions[entry.write.ticket] else { continue }
            let outcome: WriteOutcome
            switch decision {
            case .reused(let indices): outcome = .reused(indices)
            case .conflict: outcome = .conflict
            case .record(let place, let revision):
                outcome = .written(sequence: first + Int64(place), revision: revision)
            case .changes(let places):
                outcome = .accepted(
                    places.map { place in
                        switch place {
                        case .known(let sequence): .duplicate(sequence)
                        case .fresh(let place):
                            written.insert(place).inserted
                                ? .appended(first + Int64(place))
                                : .duplicate(first + Int64(place))
                        }
                    })
            }
            if !expired.contains(entry.write.ticket) {
                outcomes.append((entry.write.ticket, outcome))
            }
        }
        return outcomes
    }

    /// Returns the tickets of writes whose deadline has passed since the last call; they wait no
    /// more.
    mutating func expire(at now: Int64) -> [UInt64] {
        guard let nextDeadline, nextDeadline <= now else { return [] }
        let tickets = waiting.filter { $0.deadline <= now }.map(\.write.ticket)
        expired.formUnion(tickets)
        self.nextDeadline = waiting.lazy.map(\.deadline).min()
        return tickets
    }
}
