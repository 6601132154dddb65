import Testing

@testable import gateway_faults

private let (panda, bear) = (RecordBuilder.panda, RecordBuilder.bear)
private let old = Interest(kind: .status, subject: .account("1"))
private let new = Interest(kind: .status, subject: .account("2"))
// What changes.
private let (p, b) = (Subject.character("panda"), Subject.character("bear"))

/// The judge's verdicts on clients, and on answers to posts.
@Suite struct JudgeTests {
    enum Step: Sendable {
        case begin(Set<Interest>)
        case register(Set<Interest>, RegistrationOutcome = .inForce(from: 0))
        case post([Subject])
        /// A post of a batch with that number is answered: so many events are accepted, so many are
        /// duplicates.
        case answer(Int, Int, Int, at: UInt64, of: [Subject] = [p, b])
        /// A post of the batch 1 has no answer.
        case unanswered
        case tell(ReceivedNotification.Target, at: UInt64? = nil, opened: Double = 0)
        case move(to: UInt64? = nil)
        case add(Record.Event)
        case expect([Violation.Kind])
    }

    struct History: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let steps: [Step]

        init(_ what: String, _ steps: Step...) { (testDescription, self.steps) = (what, steps) }
    }

    private static let cursors: [History] = [
        History(
            "what is told below the cursor is fine", .begin([panda]), .post([p]),
            .tell(.interest(panda)), .move(), .expect([])),
        History(
            "a cursor beyond an untold change is a loss", .begin([panda]), .post([p]), .move(),
            .move(), .expect([.lost])),
        History(
            "a change above the cursor is not owed yet", .begin([panda]), .post([p]),
            .move(to: 0), .expect([])),
        History(
            "a later telling below the same cursor covers an earlier change", .begin([panda]),
            .post([p]), .post([p]), .tell(.interest(panda), at: 2), .move(), .expect([])),
        History(
            "an earlier telling does not cover a later change", .begin([panda]), .post([p]),
            .post([p]), .tell(.interest(panda), at: 1), .move(), .expect([.lost])),
        History(
            "what was built at a cursor is not owed below it", .post([p]), .begin([panda]),
            .move(), .expect([])),
        History(
            "a notification of nothing new since the cursor is needless", .begin([panda, bear]),
            .post([p]), .tell(.interest(panda)), .tell(.interest(panda)), .expect([]), .move(),
            .post([b]), .tell(.kind(.detail)), .tell(.interest(bear)), .expect([]),
            .tell(.interest(panda)), .expect([.needless]), .move(), .tell(.kind(.detail)),
            .expect([.needless, .needless])),
        History(
            "a cursor never goes back", .begin([panda]), .move(to: 5), .move(to: 5), .move(to: 4),
            .expect([.watermarkBack])),
        History(
            "all needs a reason", .begin([panda]), .tell(.all), .expect([.unexplainedAll])),
        History(
            "all may be told when it is expected", .begin([panda]), .add(.allExpected),
            .post([p]), .tell(.all), .move(), .expect([])),
        History(
            "what the row saw is a violation",
            .add(.unverifiable(client: "anna", reason: "forged")), .add(.broken("it hangs")),
            .expect([.unverifiable, .broken])),
    ]

    private static let registrations: [History] = [
        History(
            "at another node a registration is in force from its sequence", .begin([panda]),
            .post([p, p, p]), .register([bear], .inForce(from: 3)),
            .tell(.interest(panda), at: 2, opened: 6), .expect([])),
        History(
            "and then the old one is not", .begin([panda]), .post([p, p, p]),
            .register([bear], .inForce(from: 3)), .tell(.interest(panda), at: 3, opened: 6),
            .expect([.stray])),
        History(
            "a new widget is owed what changes after the answer", .begin([panda]), .post([b]),
            .register([bear]), .move(), .expect([]), .post([b]), .move(), .expect([.lost])),
        History(
            "a dropped widget is not owed", .begin([panda]), .post([p]), .register([bear]),
            .move(), .expect([])),
        History(
            "an unanswered registration leaves only what both hold", .begin([panda]),
            .register([bear], .unknown), .post([p, b]), .tell(.interest(bear), at: 2), .move(),
            .expect([])),
        History(
            "whoever is told of a dropped widget hears a stray", .begin([panda]),
            .register([bear]), .post([p]), .tell(.interest(panda)), .expect([.stray])),
        History(
            "a change sent before the drop may still be told", .begin([panda]), .post([p]),
            .register([bear]), .tell(.interest(panda)), .expect([])),
        History(
            "a stream opened after the drop may not tell it", .begin([panda]), .post([p]),
            .register([bear]), .tell(.interest(panda), opened: 100), .expect([.stray])),
        History(
            "who moved to another account hears no more of the old", .begin([old]),
            .register([new]), .post([.account("2")]), .tell(.kind(.status)), .move(),
            .expect([]), .post([.account("1")]), .tell(.kind(.status)), .expect([.stray])),
        History(
            "who was removed hears nothing", .begin([panda]), .register([]), .post([p]),
            .tell(.kind(.detail)), .tell(.foreign("extra")), .move(), .expect([.stray, .stray])),
    ]

    private static let lostEnds: [History] = [
        History(
            "what the lost end owed is owed still", .begin([panda, bear]), .post([p]), .post([b]),
            .tell(.interest(panda), at: 1), .move(to: 1), .add(.logLost), .move(to: 1),
            .expect([.lost]), .tell(.all), .expect([])),
        History(
            "the next generation has sequences of its own", .begin([panda]), .post([p]),
            .tell(.interest(panda)), .move(), .add(.logLost), .tell(.all, at: 0),
            .answer(1, 1, 0, at: 1, of: [p]), .move(to: 0), .expect([]),
            .answer(7, 1, 0, at: 2, of: [p]), .move(to: 2), .expect([.lost])),
    ]

    private static let answers: [History] = [
        History(
            "a repeat taken anew was a false 202", .post([p, b]), .answer(1, 2, 0, at: 4),
            .expect([.falseAccepted, .falseAccepted])),
        History(
            "a repeat at another sequence was a false 202", .post([p, b]),
            .answer(1, 0, 2, at: 3), .expect([.falseAccepted])),
        History(
            "the log has not forgotten the newest", .add(.logKeeps(entries: 2)), .post([p, b]),
            .answer(1, 2, 0, at: 4), .expect([.falseAccepted, .falseAccepted])),
        History(
            "a repeat of what the log has forgotten is new", .add(.logKeeps(entries: 2)),
            .post([p, b]), .post([p, b]), .answer(1, 0, 2, at: 2), .answer(1, 2, 0, at: 6),
            .expect([]), .answer(1, 0, 2, at: 2), .expect([.falseAccepted])),
        History(
            "a batch that the log remembers is not split", .add(.logKeeps(entries: 2)),
            .post([p, b]), .answer(1, 1, 1, at: 3), .expect([.splitBatch])),
        History(
            "of a batch the log may have forgotten the beginning", .add(.logKeeps(entries: 2)),
            .post([p, b]), .post([p]), .answer(1, 1, 1, at: 4), .expect([]),
            .answer(1, 0, 1, at: 4), .expect([.splitBatch])),
        History(
            "sequences are given out once", .answer(1, 2, 0, at: 2), .answer(2, 2, 0, at: 3),
            .expect([.doubledSequence])),
        History(
            "not to a catalog, too", .answer(1, 2, 0, at: 2), .add(.catalog(sequence: 2)),
            .expect([.doubledSequence])),
        History(
            "and a batch takes as many as it has events", .answer(1, 2, 0, at: 1),
            .expect([.doubledSequence])),
        History(
            "an unanswered post is owed once its repeat tells that it was taken",
            .begin([panda]), .unanswered, .move(to: 2), .answer(1, 0, 2, at: 2),
            .expect([.lost])),
    ]

    private static let repeats = [
        (2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0), (2, 2), (-1, -1),
    ].map { accepted, duplicates -> History in
        let isWhole = [[2, 0], [0, 2]].contains([accepted, duplicates])
        return History(
            "a batch is taken whole or not at all: \(accepted) and \(duplicates)", .unanswered,
            .answer(1, accepted, duplicates, at: 2), .expect(isWhole ? [] : [.splitBatch]))
    }

    private static let histories = cursors + registrations + lostEnds + answers + repeats

    @Test(arguments: histories) func aHistoryIsJudged(_ history: History) {
        var run = RecordBuilder()
        for (place, step) in history.steps.enumerated() {
            switch step {
            case .begin(let interests): run.begin(interests)
            case .register(let interests, let outcome): run.register("anna", interests, outcome)
            case .post(let subjects): run.post(subjects)
            case .answer(let batch, let accepted, let duplicates, let sequence, let subjects):
                run.attempt(
                    batch, subjects,
                    .accepted(accepted: accepted, duplicates: duplicates, sequence: sequence))
            case .unanswered: run.attempt(1, [p, b], .unknown)
            case .tell(let target, let sequence, let opened):
                run.tell("anna", target, at: sequence, opened: opened)
            case .move(let sequence): run.move(to: sequence)
            case .add(let event): run.add(event)
            case .expect(let kinds): #expect(run.kinds == kinds, "step \(place + 1)")
            }
        }
    }

    @Test func aKindAloneCoversItsWidgetsAndNoOthers() {
        var run = RecordBuilder()
        run.begin([panda, Interest(kind: .party, subject: p)])
        run.post([p])
        run.tell("anna", .kind(.detail))
        run.move()
        let violations = Judge.judge(run.record).violations
        #expect(violations.map(\.kind) == [.lost])
        #expect(violations[0].text.contains("party of panda"))
    }

    @Test func whereAllMayBeToldANeedlessNotificationIsOnlyCounted() {
        var run = RecordBuilder()
        run.begin([panda])
        run.add(.allExpected)
        run.tell("anna", .interest(panda))
        run.tell("anna", .kind(.detail))
        #expect(run.kinds == [])
        #expect(Judge.judge(run.record).excused == 2)
    }

    @Test func aRepeatAnsweredAsADuplicateIsNoChange() {
        var run = RecordBuilder()
        run.post([p, b])
        run.attempt(1, [p, b], .accepted(accepted: 0, duplicates: 2, sequence: 2))
        #expect(run.kinds == [])
        #expect(Judge.judge(run.record).changes == 2)
    }

    @Test func ofTwoAttemptsAtATimeTheDuplicateMayBeAnsweredFirst() {
        var run = RecordBuilder()
        let (sent, two) = (run.time, [p, b])
        run.attempt(1, two, .accepted(accepted: 0, duplicates: 2, sequence: 2), sent: sent)
        run.attempt(1, two, .accepted(accepted: 2, duplicates: 0, sequence: 2), sent: sent)
        #expect(run.kinds == [])
        run.attempt(1, two, .accepted(accepted: 2, duplicates: 0, sequence: 2), sent: sent)
        #expect(run.kinds == [.falseAccepted], "only one of them may be new")
        run = RecordBuilder()
        run.attempt(1, two, .accepted(accepted: 0, duplicates: 2, sequence: 2))
        run.attempt(1, two, .accepted(accepted: 2, duplicates: 0, sequence: 2))
        #expect(run.kinds == [.falseAccepted], "it was sent after the answer to the duplicate")
    }
}
