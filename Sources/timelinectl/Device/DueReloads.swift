/// Tracks the timelines that each change must rebuild, and the outcome.
///
/// A change is known before it is posted, but its sequence only after the gateway's response, and a
/// device may be faster than that response. A rebuild counts for the latest change that its
/// acknowledgement covers, as in the gateway's own metric.
///
/// A change that concerns a timeline by several rules sends a notification for each of them, at
/// once or at the end of the rule's collapse window. All of them cost one rebuild, which settles
/// every change that the device had heard of when the rebuild began. A later notification of such a
/// change is a stray.
struct DueReloads: Sendable {
    /// The number of a change, in posting order.
    typealias ChangeNumber = Int

    private struct Change {
        let at: ContinuousClock.Instant
        let timelines: Set<Int>
        var sequence: UInt64?
        var open: Int
    }

    /// A rebuild that was not judged yet because it may cover a change whose sequence is not yet
    /// known.
    private struct Early {
        let sequence: UInt64
        let at: ContinuousClock.Instant
    }

    /// The outcome of one rebuild or response.
    struct Outcome: Equatable {
        /// The durations of rebuilds, each from the latest change that the rebuild covers.
        var took: [(timeline: Int, time: Duration)] = []
        /// Rebuilds that no posted change accounts for.
        var strays = 0

        static func == (left: Self, right: Self) -> Bool {
            left.strays == right.strays && left.took.elementsEqual(right.took) { $0 == $1 }
        }
    }

    private var changes: [ChangeNumber: Change] = [:]
    private var next = 0
    private var owed: [Int: [ChangeNumber]] = [:]
    private var early: [Int: [Early]] = [:]

    /// The longest time a reload may take.
    private let patience: Duration

    init(patience: Duration) {
        self.patience = patience
    }

    /// Reloads that are due now: pairs of a change and a timeline.
    private(set) var due = 0

    /// Records a change that is about to be posted, with the timelines that it concerns.
    mutating func post(_ timelines: Set<Int>, at: ContinuousClock.Instant) -> ChangeNumber {
        defer { next += 1 }
        changes[next] = Change(at: at, timelines: timelines, open: timelines.count)
        for timeline in timelines { owed[timeline, default: []].append(next) }
        due += timelines.count
        return next
    }

    /// Records that the gateway accepted a change.
    mutating func accepted(_ number: ChangeNumber, at sequence: UInt64) -> Outcome {
        guard let timelines = changes[number]?.timelines else { return Outcome() }
        changes[number]?.sequence = sequence
        if timelines.isEmpty { changes[number] = nil }
        return timelines.reduce(into: Outcome()) { settleEarly($1, &$0) }
    }

    /// Records that the gateway rejected a change.
    mutating func refused(_ number: ChangeNumber) -> Outcome {
        guard let timelines = changes[number]?.timelines else { return Outcome() }
        for timeline in timelines { settle(number, of: timeline) }
        changes[number] = nil
        return timelines.reduce(into: Outcome()) { settleEarly($1, &$0) }
    }

    /// Records that a device acknowledged a rebuild of a timeline that covers its changes up to
    /// `sequence`.
    mutating func rebuilt(
        _ timeline: Int, upTo sequence: UInt64, at: ContinuousClock.Instant
    ) -> Outcome {
        early[timeline, default: []].append(Early(sequence: sequence, at: at))
        var outcome = Outcome()
        settleEarly(timeline, &outcome)
        return outcome
    }

    /// Gives up reloads that are overdue and returns their number; each is counted once.
    mutating func giveUp(now: ContinuousClock.Instant) -> Int {
        var lost = 0
        for (number, change) in changes where now - change.at >= patience {
            for timeline in change.timelines where owed[timeline]?.contains(number) == true {
                settle(number, of: timeline)
                lost += 1
            }
            changes[number] = nil
        }
        return lost
    }

    private mutating func settle(_ number: ChangeNumber, of timeline: Int) {
        guard let place = owed[timeline]?.firstIndex(of: number) else { return }
        owed[timeline]?.remove(at: place)
        if owed[timeline]?.isEmpty == true { owed[timeline] = nil }
        due -= 1
        guard var change = changes[number] else { return }
        change.open -= 1
        changes[number] = change.open == 0 && change.sequence != nil ? nil : change
    }

    /// Judges the rebuilds of a timeline in order, up to the first that may cover a change whose
    /// sequence is not known yet.
    private mutating func settleEarly(_ timeline: Int, _ outcome: inout Outcome) {
        guard var rebuilds = early.removeValue(forKey: timeline) else { return }
        while let rebuild = rebuilds.first {
            let owed = (owed[timeline] ?? []).compactMap { number in
                changes[number].map { (number: number, change: $0) }
            }
            guard !owed.contains(where: { $0.change.sequence == nil && $0.change.at <= rebuild.at })
            else { break }
            rebuilds.removeFirst()
            let covered = owed.filter { ($0.change.sequence ?? .max) <= rebuild.sequence }
            if let latest = covered.max(by: {
                ($0.change.sequence ?? 0) < ($1.change.sequence ?? 0)
            }) {
                outcome.took.append((timeline, rebuild.at - latest.change.at))
                for change in covered { settle(change.number, of: timeline) }
            } else {
                outcome.strays += 1
            }
        }
        if !rebuilds.isEmpty { early[timeline] = rebuilds }
    }
}
