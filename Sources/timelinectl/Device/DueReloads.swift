/// Which timelines have to be rebuilt for which change, and what became of that.
///
/// A change is known before it is posted, and its sequence only when the gateway has answered; a
/// device may be faster than that answer. A rebuild counts for the latest change that its
/// acknowledgement covers, as in the gateway's own metric.
///
/// A change that concerns a timeline by several rules is notified for each of them, at once or when
/// the rule's collapse window ends, and each may cost a rebuild. So may the windows of several
/// changes, each by a rule of its own, of which the latest is notified first. One rebuild settles all
/// changes that it covers; those that follow for their other rules were asked for all the same.
struct DueReloads: Sendable {
    /// A number of a change in the order posted.
    typealias ChangeNumber = Int

    private struct Change {
        let at: ContinuousClock.Instant
        /// By which rules it concerns each.
        let timelines: [Int: Set<Int>]
        var sequence: UInt64?
        var open: Int
    }

    /// A rebuild that was not judged yet, because it may cover a change whose sequence is not known.
    private struct Early {
        let sequence: UInt64
        let at: ContinuousClock.Instant
    }

    /// What came of one rebuild or answer.
    struct Outcome: Equatable {
        /// How long timelines took, from the latest change that each rebuild covers.
        var took: [(timeline: Int, time: Duration)] = []
        /// Rebuilds that nothing posted asked for.
        var strays = 0

        static func == (left: Self, right: Self) -> Bool {
            left.strays == right.strays && left.took.elementsEqual(right.took) { $0 == $1 }
        }
    }

    private var changes: [ChangeNumber: Change] = [:]
    private var next = 0
    private var owed: [Int: [ChangeNumber]] = [:]
    private var early: [Int: [Early]] = [:]
    /// Further rebuilds that settled changes asked for, each by when its change was posted.
    private var further: [Int: [ContinuousClock.Instant]] = [:]

    /// How late a reload may be.
    private let patience: Duration

    /// Nothing is due.
    init(patience: Duration) {
        self.patience = patience
    }

    /// Reloads that are due now: pairs of a change and a timeline.
    private(set) var due = 0

    /// A change is about to be posted that concerns these timelines, each by these rules.
    mutating func post(_ timelines: [Int: Set<Int>], at: ContinuousClock.Instant) -> ChangeNumber {
        defer { next += 1 }
        changes[next] = Change(at: at, timelines: timelines, open: timelines.count)
        for timeline in timelines.keys { owed[timeline, default: []].append(next) }
        due += timelines.count
        return next
    }

    /// The gateway took a change.
    mutating func accepted(_ number: ChangeNumber, at sequence: UInt64) -> Outcome {
        guard let timelines = changes[number]?.timelines.keys else { return Outcome() }
        changes[number]?.sequence = sequence
        if timelines.isEmpty { changes[number] = nil }
        return timelines.reduce(into: Outcome()) { settleEarly($1, &$0) }
    }

    /// The gateway did not take a change.
    mutating func refused(_ number: ChangeNumber) -> Outcome {
        guard let timelines = changes[number]?.timelines.keys else { return Outcome() }
        for timeline in timelines { settle(number, of: timeline) }
        changes[number] = nil
        return timelines.reduce(into: Outcome()) { settleEarly($1, &$0) }
    }

    /// A device acknowledged that it rebuilt a timeline, with every change of it up to `sequence`.
    mutating func rebuilt(
        _ timeline: Int, upTo sequence: UInt64, at: ContinuousClock.Instant
    ) -> Outcome {
        early[timeline, default: []].append(Early(sequence: sequence, at: at))
        var outcome = Outcome()
        settleEarly(timeline, &outcome)
        return outcome
    }

    /// Gives up what is due for too long; each is counted once.
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

    /// Settles the changes that a rebuild covers. One of their rules was notified; each other one
    /// may be yet, once for all of them.
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
