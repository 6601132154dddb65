import Testing

@testable import gateway_faults

/// The judge's verdicts on clients.
@Suite struct ClientJudgeTests {
    private let panda = RecordBuilder.panda
    private let bear = RecordBuilder.bear

    @Test func whatIsToldBelowTheCursorIsFine() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"))
        run.tell("anna", .interest(panda))
        run.move()
        #expect(run.kinds == [])
    }

    @Test func aCursorBeyondAnUntoldChangeIsALoss() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"))
        run.move()
        run.move()
        #expect(run.kinds == [.lost])
    }

    @Test func aChangeAboveTheCursorIsNotOwedYet() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"))
        run.move(to: 0)
        #expect(run.kinds == [])
    }

    @Test func aLaterTellingBelowTheSameCursorCoversAnEarlierChange() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"))
        run.post(.character("panda"))
        run.tell("anna", .interest(panda), at: 2)
        run.move()
        #expect(run.kinds == [])
    }

    @Test func anEarlierTellingDoesNotCoverALaterChange() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"))
        run.post(.character("panda"))
        run.tell("anna", .interest(panda), at: 1)
        run.move()
        #expect(run.kinds == [.lost])
    }

    @Test func aKindAloneCoversItsWidgetsAndNoOthers() {
        var run = RecordBuilder()
        let party = Interest(kind: .party, subject: .character("panda"))
        run.begin([panda, party])
        run.post(.character("panda"))
        run.tell("anna", .kind(.detail))
        run.move()
        let violations = Judge.judge(run.record).violations
        #expect(violations.map(\.kind) == [.lost])
        #expect(violations[0].text.contains("party of panda"))
    }

    @Test func whatWasBuiltAtACursorIsNotOwedBelowIt() {
        var run = RecordBuilder()
        run.post(.character("panda"))
        run.begin([panda])
        run.move()
        #expect(run.kinds == [])
    }

    @Test func aNotificationOfNothingNewSinceTheCursorIsNeedless() {
        var run = RecordBuilder()
        run.begin([panda, bear])
        run.post(.character("panda"))
        run.tell("anna", .interest(panda))
        run.tell("anna", .interest(panda))
        #expect(run.kinds == [], "no cursor covers the first")
        run.move()
        run.post(.character("bear"))
        run.tell("anna", .kind(.detail))
        run.tell("anna", .interest(bear))
        #expect(run.kinds == [])
        run.tell("anna", .interest(panda))
        #expect(run.kinds == [.needless])
        run.move()
        run.tell("anna", .kind(.detail))
        #expect(run.kinds == [.needless, .needless])
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

    // MARK: Registrations that change

    @Test(arguments: [(at: UInt64(2), isStray: false), (at: 3, isStray: true)])
    func atAnotherNodeARegistrationIsInForceFromItsSequence(at: UInt64, isStray: Bool) {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"), .character("panda"), .character("panda"))
        run.register("anna", [bear], .inForce(from: 3))
        run.tell("anna", .interest(panda), at: at, opened: run.time + 1)
        #expect(run.kinds == (isStray ? [.stray] : []))
    }

    @Test func aNewWidgetIsOwedWhatChangesAfterTheAnswer() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("bear"))
        run.register("anna", [bear])
        run.move()
        #expect(run.kinds == [], "what changed before is in the data it was built with")
        run.post(.character("bear"))
        run.move()
        #expect(run.kinds == [.lost])
    }

    @Test func aDroppedWidgetIsNotOwed() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"))
        run.register("anna", [bear])
        run.move()
        #expect(run.kinds == [])
    }

    @Test func anUnansweredRegistrationLeavesOnlyWhatBothHold() {
        var run = RecordBuilder()
        run.begin([panda])
        run.register("anna", [bear], .unknown)
        run.post(.character("panda"), .character("bear"))
        run.tell("anna", .interest(bear), at: 2)
        run.move()
        #expect(run.kinds == [])
    }

    @Test func whoIsToldOfADroppedWidgetHearsAStray() {
        var run = RecordBuilder()
        run.begin([panda])
        run.register("anna", [bear])
        run.post(.character("panda"))
        run.tell("anna", .interest(panda))
        #expect(run.kinds == [.stray])
    }

    @Test func aChangeSentBeforeTheDropMayStillBeTold() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"))
        run.register("anna", [bear])
        run.tell("anna", .interest(panda))
        #expect(run.kinds == [])
    }

    @Test func aStreamOpenedAfterTheDropMayNotTellIt() {
        var run = RecordBuilder()
        run.begin([panda])
        run.post(.character("panda"))
        run.register("anna", [bear])
        run.tell("anna", .interest(panda), opened: 100)
        #expect(run.kinds == [.stray])
    }

    @Test func whoMovedToAnotherAccountHearsNoMoreOfTheOld() {
        var run = RecordBuilder()
        let old = Interest(kind: .status, subject: .account("1"))
        let new = Interest(kind: .status, subject: .account("2"))
        run.begin([old])
        run.register("anna", [new])
        run.post(.account("2"))
        run.tell("anna", .kind(.status))
        run.move()
        #expect(run.kinds == [])
        run.post(.account("1"))
        run.tell("anna", .kind(.status))
        #expect(run.kinds == [.stray])
    }

    @Test func whoWasRemovedHearsNothing() {
        var run = RecordBuilder()
        run.begin([panda])
        run.register("anna", [])
        run.post(.character("panda"))
        run.tell("anna", .kind(.detail))
        run.tell("anna", .foreign("extra"))
        run.move()
        #expect(run.kinds == [.stray, .stray])
    }

    // MARK: Cursors, all, signatures

    @Test func aCursorNeverGoesBack() {
        var run = RecordBuilder()
        run.begin([panda])
        run.move(to: 5)
        run.move(to: 5)
        run.move(to: 4)
        #expect(run.kinds == [.watermarkBack])
    }

    @Test func allNeedsAReason() {
        var run = RecordBuilder()
        run.begin([panda])
        run.tell("anna", .all)
        #expect(run.kinds == [.unexplainedAll])
        var expected = RecordBuilder()
        expected.begin([panda])
        expected.add(.allExpected)
        expected.post(.character("panda"))
        expected.tell("anna", .all)
        expected.move()
        #expect(expected.kinds == [])
    }

    @Test func whatTheRowSawIsAViolation() {
        var run = RecordBuilder()
        run.add(.unverifiable(client: "anna", reason: "forged"))
        run.add(.broken("it hangs"))
        #expect(run.kinds == [.unverifiable, .broken])
    }

    // MARK: A log that loses its end

    @Test func whatTheLostEndOwedIsOwedStill() {
        var run = RecordBuilder()
        run.begin([panda, bear])
        run.post(.character("panda"))
        run.post(.character("bear"))
        run.tell("anna", .interest(panda), at: 1)
        run.move(to: 1)
        run.add(.logLost)
        run.move(to: 1)
        #expect(run.kinds == [.lost])
        run.tell("anna", .all)
        #expect(run.kinds == [])
    }

    @Test func theNextGenerationHasSequencesOfItsOwn() {
        var run = RecordBuilder()
        run.begin([panda])
        let batch = run.post(.character("panda"))
        run.tell("anna", .interest(panda))
        run.move()
        run.add(.logLost)
        run.tell("anna", .all, at: 0)
        run.attempt(
            batch, [.character("panda")], .accepted(accepted: 1, duplicates: 0, sequence: 1))
        run.move(to: 0)
        #expect(run.kinds == [])
        run.attempt(7, [.character("panda")], .accepted(accepted: 1, duplicates: 0, sequence: 2))
        run.move(to: 2)
        #expect(run.kinds == [.lost])
    }
}
