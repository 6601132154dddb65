import Testing

@testable import gateway_faults

/// The judge's verdicts on answers to posts.
@Suite struct LogJudgeTests {
    private let two: [Subject] = [.character("panda"), .character("bear")]

    @Test func aRepeatAnsweredAsADuplicateIsFine() {
        var run = RecordBuilder()
        let batch = run.post(.character("panda"), .character("bear"))
        run.attempt(batch, two, .accepted(accepted: 0, duplicates: 2, sequence: 2))
        #expect(run.kinds == [])
        #expect(Judge.judge(run.record).changes == 2)
    }

    @Test func aRepeatTakenAnewWasAFalse202() {
        var run = RecordBuilder()
        let batch = run.post(.character("panda"), .character("bear"))
        run.attempt(batch, two, .accepted(accepted: 2, duplicates: 0, sequence: 4))
        #expect(run.kinds == [.falseAccepted, .falseAccepted])
    }

    @Test func ofTwoAttemptsAtATimeTheDuplicateMayBeAnsweredFirst() {
        var run = RecordBuilder()
        let sent = run.time
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

    @Test func aRepeatOfWhatTheLogHasForgottenIsNew() {
        var run = RecordBuilder()
        run.add(.logKeeps(entries: 2))
        let batch = run.post(.character("panda"), .character("bear"))
        run.attempt(batch, two, .accepted(accepted: 2, duplicates: 0, sequence: 4))
        #expect(run.kinds == [.falseAccepted, .falseAccepted], "it is the newest")
        run = RecordBuilder()
        run.add(.logKeeps(entries: 2))
        let old = run.post(.character("panda"), .character("bear"))
        _ = run.post(.character("panda"), .character("bear"))
        run.attempt(old, two, .accepted(accepted: 0, duplicates: 2, sequence: 2))
        run.attempt(old, two, .accepted(accepted: 2, duplicates: 0, sequence: 6))
        #expect(run.kinds == [])
        run.attempt(old, two, .accepted(accepted: 0, duplicates: 2, sequence: 2))
        #expect(run.kinds == [.falseAccepted], "it was taken at 6")
    }

    @Test func ofABatchTheLogMayHaveForgottenTheBeginning() {
        var run = RecordBuilder()
        run.add(.logKeeps(entries: 2))
        let batch = run.post(.character("panda"), .character("bear"))
        run.attempt(batch, two, .accepted(accepted: 1, duplicates: 1, sequence: 3))
        #expect(run.kinds == [.splitBatch], "both are among the newest two")
        run = RecordBuilder()
        run.add(.logKeeps(entries: 2))
        let old = run.post(.character("panda"), .character("bear"))
        _ = run.post(.character("panda"))
        run.attempt(old, two, .accepted(accepted: 1, duplicates: 1, sequence: 4))
        #expect(run.kinds == [])
        run.attempt(old, two, .accepted(accepted: 0, duplicates: 1, sequence: 4))
        #expect(run.kinds == [.splitBatch], "one event is missing")
    }

    @Test func aRepeatAtAnotherSequenceWasAFalse202() {
        var run = RecordBuilder()
        let batch = run.post(.character("panda"), .character("bear"))
        run.attempt(batch, two, .accepted(accepted: 0, duplicates: 2, sequence: 3))
        #expect(run.kinds == [.falseAccepted])
    }

    @Test(arguments: [(1, 1), (1, 0), (0, 1), (0, 0), (2, 2), (-1, -1)])
    func aBatchIsTakenWholeOrNotAtAll(accepted: Int, duplicates: Int) {
        var run = RecordBuilder()
        run.attempt(1, two, .unknown)
        run.attempt(
            1, two, .accepted(accepted: accepted, duplicates: duplicates, sequence: 2))
        #expect(run.kinds == [.splitBatch])
    }

    @Test func anUnansweredPostMayHaveBeenTakenOrNot() {
        for outcome in [(2, 0), (0, 2)] {
            var run = RecordBuilder()
            run.attempt(1, two, .unknown)
            run.attempt(
                1, two, .accepted(accepted: outcome.0, duplicates: outcome.1, sequence: 2))
            #expect(run.kinds == [])
        }
    }

    @Test func sequencesAreGivenOutOnce() {
        var run = RecordBuilder()
        run.attempt(1, two, .accepted(accepted: 2, duplicates: 0, sequence: 2))
        run.attempt(2, two, .accepted(accepted: 2, duplicates: 0, sequence: 3))
        #expect(run.kinds == [.doubledSequence])
        var catalog = RecordBuilder()
        catalog.attempt(1, two, .accepted(accepted: 2, duplicates: 0, sequence: 2))
        catalog.add(.catalog(sequence: 2))
        #expect(catalog.kinds == [.doubledSequence])
        var low = RecordBuilder()
        low.attempt(1, two, .accepted(accepted: 2, duplicates: 0, sequence: 1))
        #expect(low.kinds == [.doubledSequence])
    }

    @Test func anUnansweredPostIsOwedOnceItsRepeatTellsThatItWasTaken() {
        var run = RecordBuilder()
        run.begin([RecordBuilder.panda])
        run.attempt(1, two, .unknown)
        run.move(to: 2)
        run.attempt(1, two, .accepted(accepted: 0, duplicates: 2, sequence: 2))
        #expect(run.kinds == [.lost])
    }
}
