import WidgetModel

struct ShapeOutcome {
    let shape: String
    /// The number of answers, by status.
    var statuses: [Int: Int] = [:]
    /// The number of connections that were lost, streams that the gateway ended among them.
    var lost = 0
    /// The routes whose answers showed that they looked at the whole document.
    var reached: Set<Route> = []
    /// The routes that the shape was for and whose answers never showed that.
    var missed: [Route] = []
    /// The waits of the bystander's posts meanwhile.
    var bystander = BystanderStats(milliseconds: [])
    /// The turns of the gateway's threads meanwhile; `nil` where the metrics page has no histogram.
    var turns: TurnHistogram?
    /// The gateway's CPU time meanwhile, in seconds.
    var cpuSeconds = 0.0
    /// The length, in seconds.
    var seconds = 0.0
    var measurements = 1

    /// Whether a turn took too long of a thread that turns are judged of.
    var hasLongTurns: Bool {
        turns?.long.contains { $0.thread != TurnHistogram.writer } ?? false
    }

    /// Adds another measurement of the same shape: every answer and every post of the bystander
    /// counts, and of the turns those of the later measurement.
    mutating func add(_ later: ShapeOutcome) {
        statuses.merge(later.statuses, uniquingKeysWith: +)
        lost += later.lost
        reached.formUnion(later.reached)
        missed.removeAll { reached.contains($0) }
        bystander = BystanderStats([bystander, later.bystander])
        turns = later.turns
        cpuSeconds += later.cpuSeconds
        seconds += later.seconds
        measurements += later.measurements
    }

    /// The number of answers with a status of this hundred.
    func answers(_ hundred: Int) -> Int {
        statuses.reduce(0) { $0 + ($1.key / 100 == hundred ? $1.value : 0) }
    }
}

/// The verdict on a run, by its bounds.
struct ComplexityVerdict {
    struct Bound: Equatable {
        let name: String
        let isMet: Bool
        let finding: String

        var json: JSONValue {
            ["name": .string(name), "met": .bool(isMet), "found": .string(finding)]
        }
    }

    /// The bound of the bystander's p99: this share of its quiet p99, or so many milliseconds of the
    /// gateway's CPU time if that is more.
    static let (p99Ratio, p99Milliseconds) = (3.0, 50.0)
    /// The bound of the bystander's slowest post, in milliseconds of the gateway's CPU time.
    static let slowestMilliseconds = 250.0

    /// The bounds, in the report's order.
    let bounds: [Bound]

    var isMet: Bool { bounds.allSatisfy(\.isMet) }

    /// Judges a run. `quiet` is the bystander alone. `coverage` is `nil` if only some shapes ran,
    /// because it would say nothing.
    init(quiet: BystanderStats, outcomes: [ShapeOutcome], coverage: RouteCoverage?) {
        let attacked = BystanderStats(outcomes.map(\.bystander))
        let all = BystanderStats([quiet, attacked])
        let isAttacked = !attacked.milliseconds.isEmpty
        let isMeasured = isAttacked && !quiet.milliseconds.isEmpty
        let (p99, quietP99) = (attacked.percentile(0.99), quiet.percentile(0.99))
        let p99Max = max(Self.p99Ratio * quietP99, Self.p99Milliseconds)
        let without = outcomes.filter(\.bystander.milliseconds.isEmpty).map(\.shape)
        let missed = outcomes.filter { !$0.missed.isEmpty }.map { outcome in
            "\(outcome.shape): " + outcome.missed.map(\.description).joined(separator: ", ")
        }
        let limited = outcomes.filter { $0.statuses[429] ?? 0 > 0 }
            .map { "\($0.shape) \($0.statuses[429] ?? 0)" }
        var bounds: [Bound] = []
        func judge(_ name: String, _ isMet: Bool, _ finding: String) {
            bounds.append(Bound(name: name, isMet: isMet, finding: finding))
        }
        judge(
            "bystander's p99", isMeasured && p99 <= p99Max,
            !isMeasured
                ? "not measured"
                : "\(Figure.text(p99)) ms CPU, at most \(Figure.text(p99Max)) ms "
                    + "(quiet \(Figure.text(quietP99)) ms)")
        judge(
            "bystander's slowest post", isAttacked && attacked.slowest < Self.slowestMilliseconds,
            !isAttacked
                ? "not measured"
                : "\(Figure.text(attacked.slowest)) ms CPU, below "
                    + "\(Figure.text(Self.slowestMilliseconds)) ms")
        judge(
            "bystander's posts taken", all.failed == 0 && without.isEmpty,
            "\(all.milliseconds.count) posts, \(all.failed) of them failed"
                + (without.isEmpty ? "" : ", none beside " + without.joined(separator: ", ")))
        bounds.append(Self.turns(outcomes))
        judge(
            "documents looked at", missed.isEmpty && !outcomes.isEmpty,
            outcomes.isEmpty
                ? "no shape ran"
                : missed.isEmpty ? "of all shapes" : "not " + missed.joined(separator: "; "))
        judge(
            "answers 429, which hide the work", limited.isEmpty,
            limited.isEmpty ? "none" : limited.joined(separator: ", "))
        if let coverage {
            let unreached = coverage.unreached.map(\.description)
            let isMet = unreached.isEmpty && !coverage.required.isEmpty
            judge(
                "routes reached", isMet,
                isMet
                    ? "all \(coverage.required.count) that take or make a document"
                    : "not " + unreached.joined(separator: ", "))
        }
        self.bounds = bounds
    }

    private static func turns(_ outcomes: [ShapeOutcome]) -> Bound {
        func bound(_ isMet: Bool, _ finding: String) -> Bound {
            Bound(
                name: "turns over \(Figure.text(TurnHistogram.boundSeconds * 1_000)) ms CPU",
                isMet: isMet, finding: finding)
        }
        let turns = outcomes.compactMap(\.turns)
        guard !outcomes.isEmpty, turns.count == outcomes.count else {
            return bound(false, "no histogram \(TurnHistogram.family) on the metrics page")
        }
        var (all, long): ([String: Int], [String: Int]) = ([:], [:])
        for (thread, turns) in turns.flatMap(\.byThread) {
            all[thread, default: 0] += turns.count
            if thread != TurnHistogram.documents { long[thread, default: 0] += turns.long }
        }
        let silent = TurnHistogram.shared.filter { all[$0] ?? 0 <= 0 }
        guard silent.isEmpty else {
            return bound(false, "no turn was counted of " + silent.joined(separator: ", "))
        }
        let ofWriter = long.removeValue(forKey: TurnHistogram.writer) ?? 0
        let found = long.filter { $0.value != 0 }.sorted { $0.key < $1.key }
            .map { "\($0.key) \($0.value)" }
        let repeated = outcomes.filter { $0.measurements > 1 }
            .map { "; \($0.shape) was measured \($0.measurements) times" }.joined()
        return bound(
            found.isEmpty,
            (found.isEmpty ? "none" : found.joined(separator: ", "))
                + " of \(all.values.reduce(0, +)); writer \(ofWriter), which the bystander judges"
                + repeated)
    }
}
