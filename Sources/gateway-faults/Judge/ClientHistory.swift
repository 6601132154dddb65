/// One client's side of a record: its registrations, and what it has to be told by each cursor.
struct ClientHistory {
    private struct Registration {
        let number: Int
        let interests: Set<Interest>
        var answered: Double?
        /// The sequence behind which it is in force.
        var sequence: UInt64 = 0
    }

    /// The moment at which a client built the widgets of an interest.
    private enum Built {
        /// With the data of this sequence.
        case at(UInt64)
        /// With data read after this time, so that it shows every change sent earlier.
        case after(Double)
    }

    private let name: String
    private let changes: ChangeHistory
    private var generation: Int
    private var registrations: [Registration] = []
    private var holdings: [Interest: Built] = [:]
    private var told: [ReceivedNotification.Target: UInt64] = [:]
    private var watermark: UInt64 = 0
    /// Interests whose change was in the part of the log that was lost.
    private var owedOfLostLog: Set<Interest> = []
    /// Whether `all` needs no further reason.
    var isAllExpected = false
    private(set) var violations: [Violation] = []
    /// Needless reloads that a fault of the run excuses.
    private(set) var excused = 0

    /// A client that has not registered yet. `generation` is that of the log when it is first met.
    init(_ name: String, _ changes: ChangeHistory, generation: Int) {
        self.name = name
        self.changes = changes
        self.generation = generation
    }

    // MARK: Registrations

    /// A registration was sent: what it leaves out is not owed any more.
    mutating func registering(_ number: Int, _ interests: Set<Interest>) {
        registrations.append(Registration(number: number, interests: interests))
        holdings = holdings.filter { interests.contains($0.key) }
        owedOfLostLog.formIntersection(interests)
    }

    /// It was answered.
    mutating func registered(_ number: Int, _ outcome: RegistrationOutcome, at time: Double) {
        guard let index = registrations.firstIndex(where: { $0.number == number }) else { return }
        switch outcome {
        case .unknown: return
        case .inForce(let sequence):
            registrations[index].sequence = sequence
            for interest in registrations[index].interests where holdings[interest] == nil {
                holdings[interest] = .after(time)
            }
        case .builtAnew(let sequence):
            for interest in registrations[index].interests { holdings[interest] = .at(sequence) }
            owedOfLostLog = []
            watermark = sequence
        }
        registrations[index].answered = time
    }

    /// The interests that may have been in force at `time` or later, for a notification at a sequence.
    private func interests(since time: Double, at sequence: UInt64) -> Set<Interest> {
        let start =
            registrations.lastIndex {
                ($0.answered ?? .infinity) <= time && $0.sequence <= sequence
            } ?? 0
        return registrations[start...].reduce(into: []) { $0.formUnion($1.interests) }
    }

    // MARK: Notifications

    mutating func told(_ telling: ReceivedNotification) {
        for target in telling.targets {
            switch target {
            case .all:
                if !isAllExpected { add(.unexplainedAll, "notified of all at \(telling.sequence)") }
                owedOfLostLog = []
            case .kind(let kind):
                judge(kind, telling)
                owedOfLostLog = owedOfLostLog.filter { $0.kind != kind }
            case .interest(let interest):
                let change = changes.latest(
                    interest.subject, upTo: telling.sequence, generation)
                let since = max(telling.opened, change?.sent ?? 0)
                if !interests(since: since, at: telling.sequence).contains(interest) {
                    add(
                        .stray, "notified of \(interest) at \(telling.sequence), not subscribed"
                    )
                } else if !isNews(interest, telling) {
                    addNeedless("\(interest)", telling)
                }
                owedOfLostLog.remove(interest)
            case .foreign(let kind):
                add(.stray, "notified of \(kind) at \(telling.sequence), which it never registered")
            }
            told[target] = max(told[target] ?? 0, telling.sequence)
        }
    }

    /// A notification that names a kind alone: which subject is meant follows from its sequence.
    private mutating func judge(_ kind: WidgetKind, _ telling: ReceivedNotification) {
        let possible = interests(since: telling.opened, at: telling.sequence).filter {
            $0.kind == kind
        }
        if possible.isEmpty {
            add(.stray, "notified of \(kind.rawValue) at \(telling.sequence), not subscribed")
            return
        }
        guard possible.contains(where: { isNews($0, telling) }) else {
            return addNeedless(kind.rawValue, telling)
        }
        guard let subject = changes.subject(at: telling.sequence, generation),
            subject.kinds.contains(kind)
        else { return }
        let interest = Interest(kind: kind, subject: subject)
        // Of several changes that a catch-up merges, the last may be one of somebody else.
        let isExplained = possible.contains { other in
            guard let known = changes.latest(other.subject, upTo: telling.sequence, generation)
            else { return false }
            return (other == interest || known.sequence > watermark)
                && interests(since: max(telling.opened, known.sent), at: telling.sequence)
                    .contains(other)
        }
        if !isExplained {
            add(.stray, "notified of \(interest) at \(telling.sequence), not subscribed")
        }
    }

    /// Whether an interest has changed, by what a notification reports, since the client's cursor.
    private func isNews(_ interest: Interest, _ telling: ReceivedNotification) -> Bool {
        let change = changes.latest(interest.subject, upTo: telling.sequence, generation)
        return (change?.sequence ?? 0) > watermark
    }

    /// No catalog of the campaign makes these widgets stale, and it reloads nothing as an operator.
    private mutating func addNeedless(_ name: String, _ telling: ReceivedNotification) {
        guard !isAllExpected else { return excused += 1 }
        add(
            .needless,
            "notified of \(name) at \(telling.sequence), unchanged since its cursor \(watermark)")
    }

    // MARK: Cursors

    /// The client was handed a cursor: everything up to it must have been told.
    mutating func moved(to sequence: UInt64) {
        if sequence < watermark {
            add(.watermarkBack, "its cursor went from \(watermark) back to \(sequence)")
        }
        watermark = max(watermark, sequence)
        for interest in holdings.keys.sorted(by: { $0.description < $1.description }) {
            guard let change = owed(interest, upTo: sequence) else { continue }
            add(
                .lost,
                "never notified of \(interest), changed at \(change.sequence); "
                    + "last notified at \(toldSequence(interest)), cursor \(sequence)")
            told[.interest(interest)] = change.sequence
        }
    }

    private func toldSequence(_ interest: Interest) -> UInt64 {
        max(told[.interest(interest)] ?? 0, told[.kind(interest.kind)] ?? 0, told[.all] ?? 0)
    }

    /// The change of an interest up to a sequence that the client does not know of.
    private func owed(_ interest: Interest, upTo sequence: UInt64) -> ChangeHistory.Change? {
        guard let built = holdings[interest],
            let change = changes.latest(interest.subject, upTo: sequence, generation),
            change.sequence > toldSequence(interest)
        else { return nil }
        switch built {
        case .at(let base): return change.sequence > base ? change : nil
        case .after(let time): return change.sent > time ? change : nil
        }
    }

    // MARK: Losses of the log

    /// The log lost its end: whatever this client was not told is owed in the next generation.
    mutating func logLost(at time: Double) {
        for interest in holdings.keys where owed(interest, upTo: .max) != nil {
            owedOfLostLog.insert(interest)
        }
        holdings = holdings.mapValues { _ in .after(time) }
        told = [:]
        watermark = 0
        generation += 1
        isAllExpected = true
    }

    /// The run is over: what the lost part of the log owed must have been told by now.
    mutating func end() {
        for interest in owedOfLostLog.sorted(by: { $0.description < $1.description }) {
            add(.lost, "never notified of \(interest), whose change was lost with the log")
        }
    }

    private mutating func add(_ kind: Violation.Kind, _ text: String) {
        violations.append(Violation(kind: kind, text: "\(name): \(text)"))
    }
}
