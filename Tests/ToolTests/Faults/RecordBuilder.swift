@testable import gateway_faults

/// Builds a record by hand, with one entry per second.
struct RecordBuilder {
    private(set) var record = Record()
    private var numbers: [String: Int] = [:]
    private(set) var time = 0.0
    private(set) var sequence: UInt64 = 0
    private var batch = 0

    static let panda = Interest(kind: .detail, subject: .character("panda"))
    static let bear = Interest(kind: .detail, subject: .character("bear"))

    mutating func add(_ event: Record.Event) {
        time += 1
        record.entries.append(.init(time: time, event: event))
    }

    /// Registers a client that builds everything at the present head.
    mutating func begin(_ interests: Set<Interest>, as client: String = "anna") {
        register(client, interests, .builtAnew(sequence: sequence))
    }

    /// Registers a client with other interests.
    mutating func register(
        _ client: String, _ interests: Set<Interest>,
        _ outcome: RegistrationOutcome = .inForce(from: 0)
    ) {
        numbers[client, default: 0] += 1
        let number = numbers[client] ?? 0
        add(.registering(client: client, number: number, interests: interests))
        add(.registered(client: client, number: number, outcome: outcome))
    }

    /// Posts a batch that is accepted; they are numbered from 1.
    mutating func post(_ subjects: [Subject]) {
        batch += 1
        sequence += UInt64(subjects.count)
        attempt(
            batch, subjects, .accepted(accepted: subjects.count, duplicates: 0, sequence: sequence))
    }

    /// Records one attempt to post. It was `sent` some time before its answer; by default just
    /// before it.
    mutating func attempt(
        _ batch: Int, _ subjects: [Subject], _ outcome: PostOutcome, sent: Double? = nil
    ) {
        add(
            .posted(
                PostAttempt(
                    batch: batch, subjects: subjects, sent: sent ?? time + 0.5, outcome: outcome)))
    }

    mutating func tell(
        _ client: String, _ targets: ReceivedNotification.Target..., at sequence: UInt64? = nil,
        opened: Double = 0
    ) {
        add(
            .told(
                client: client,
                ReceivedNotification(
                    sequence: sequence ?? self.sequence, targets: targets, opened: opened)))
    }

    mutating func move(_ client: String = "anna", to sequence: UInt64? = nil) {
        add(.watermark(client: client, sequence: sequence ?? self.sequence))
    }

    /// The kinds of violations that the judge finds.
    var kinds: [Violation.Kind] { Judge.judge(record).violations.map(\.kind) }
}
