/// Tracks the timelines that each change must rebuild, and the outcome.
///
/// A change is known before it is posted, but its sequence only after the gateway's response, and a
/// device may be faster than that response. A rebuild counts for the latest change that its
/// acknowledgement covers, as in the gateway's own metric.
///
/// A change that concerns a timeline by several rules sends a notification for each of them, at
/// once or at the end of the rule's collapse window, and each may cost a rebuild. The windows of
/// several changes, each by its own rule, may do the same; the latest change is then notified
/// first. One rebuild settles all changes that it covers; the rebuilds that follow for their other
/// rules are expected too.
struct DueReloads: Sendable {
    /// The number of a change, in posting order.
    typealias ChangeNumber = Int

    private struct Change {
        let at: ContinuousClock.Instant
        /// The rules that relate the change to each timeline.
        let timelines: [Int: Set<Int>]
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
    /// Further rebuilds expected for settled changes, each as the time at which its change was
    /// posted.
    private var further: [Int: [ContinuousClock.Instant]] = [:]

    /// The longest time a reload may take.
    private let patience: Duration

    /// Creates a tracker with no reloads due.
    init(patience: Duration) {
        self.patience = patience
    }

    /// Reloads that are due now: pairs of a change and a timeline.
    private(set) var due = 0

    /// Records a change that is about to be posted, with the timelines and rules that it concerns.
    mutating func post(_ timelines: [Int: Set<Int>], at: ContinuousClock.Instant) -> ChangeNumber {
        defer { next += 1 }
        changes[next] = Change(at: at, timelines: timelines, open: timelines.count)
        for timeline in timelines.keys { owed[timeline, default: []].append(next) }
        due += timelines.count
        return next
    }

    /// Records that the gateway accepted a change.
    mutating func accepted(_ number: ChangeNumber, at sequence: UInt64) -> Outcome {
        guard let timelines = changes[number]?.timelines.keys else { return Outcome() }
        changes[number]?.sequence = sequence
        if timelines.isEmpty { changes[number] = nil }
        return timelines.reduce(into: Outcome()) { settleEarly($1, &$0) }
    }

    /// Records that the gateway rejected a change.
    mutating func refused(_ number: ChangeNumber) -> Outcome {
        guard let timelines = changes[number]?.timelines.keys else { return Outcome() }
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
            for timeline in change.timelines.keys where owed[timeline]?.contains(number) == true {
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
                settle(covered.map(\.number), of: timeline, by: rebuild, latest.change.at)
            } else if let asked = further[timeline]?.firstIndex(where: {
                rebuild.at - $0 < patience
            }) {
                further[timeline]?.remove(at: asked)
            } else {
                outcome.strays += 1
            }
        }
        if !rebuilds.isEmpty { early[timeline] = rebuilds }
    }

    /// Settles the changes that a rebuild covers. One of their rules was notified; each of the
    /// other rules may still be, once for all of the changes.
    private mutating func settle(
        _ covered: [ChangeNumber], of timeline: Int, by rebuild: Early,
        _ posted: ContinuousClock.Instant
    ) {
        var rules: Set<Int> = []
        for number in covered {
            rules.formUnion(changes[number]?.timelines[timeline] ?? [])
            settle(number, of: timeline)
        }
        for _ in rules.dropFirst() { further[timeline, default: []].append(posted) }
        further[timeline]?.removeAll { rebuild.at - $0 >= patience }
    }
}
