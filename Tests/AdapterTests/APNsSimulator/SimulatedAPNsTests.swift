import APNsSimulator
import Testing

/// The rules of streams, of repeats and of chance. What else becomes of a push is tested with the
/// gateway as its client.
@Suite struct SimulatedAPNsTests {
    private static let device = JudgeFixture.token

    /// A fixture whose device has these behaviours, with a connection that has had a success.
    private func scripted(_ behaviours: [PushBehaviour]) throws -> JudgeFixture {
        var fixture = try JudgeFixture()
        try fixture.warmUp()
        fixture.apns.script(Self.device, behaviours)
        return fixture
    }

    private func isAnswer(_ effect: SimulatedAPNs.Effect, _ answer: PushAnswer) -> Bool {
        if case .answer(_, answer, _, _) = effect { true } else { false }
    }

    // MARK: Streams

    @Test func theFirstPushThatIsTakenOpensTheConnection() throws {
        var fixture = try JudgeFixture()
        fixture.apns.script(Self.device, [.refused(.unregistered), .take])
        #expect(try fixture.send(fixture.request()).count == 1)
        let effects = try fixture.send(fixture.request())
        #expect(effects.first == .settings(streamsMax: 1_000))
        #expect(effects.count == 2 && isAnswer(effects[1], .taken))
        #expect(try fixture.send(fixture.request()).count == 1)
    }

    @Test func aBurstBeforeTheFirstSuccessIsRefused() throws {
        var fixture = try JudgeFixture()
        fixture.apns.script(Self.device, [.silence(isTaken: false)])
        #expect(try fixture.send(fixture.request()) == [])
        #expect(
            try fixture.send(fixture.request(to: "0b"))
                == [.reset(stream: 3, isRefused: true)])
        #expect(fixture.apns.record.violations == [.burst: 1])
        #expect(fixture.apns.record.mostStreams == 2)
    }

    @Test func aCertificateMayBurst() throws {
        var fixture = try JudgeFixture(certificate: PushRules.topics(ofApp: "com.mygame"))
        fixture.apns.script(Self.device, [.silence(isTaken: false)])
        for _ in 0..<1_000 { #expect(try fixture.send(fixture.request()) == []) }
        #expect(
            try fixture.send(fixture.request())
                == [.reset(stream: 2_001, isRefused: true)])
        #expect(fixture.apns.record.violations == [.tooManyStreams: 1])
    }

    @Test func aRequestThatIsGivenUpMakesRoom() throws {
        var fixture = try JudgeFixture()
        fixture.apns.script(Self.device, [.silence(isTaken: true), .take])
        _ = try fixture.send(fixture.request())
        var effects: [SimulatedAPNs.Effect] = []
        fixture.apns.reset(stream: 1, on: fixture.connection, &effects)
        #expect(effects.isEmpty)
        #expect(try fixture.answer(to: fixture.request()) == .taken)
        #expect(fixture.apns.record.violations.isEmpty)
    }

    // MARK: Behaviours

    @Test(arguments: APNsReason.allCases)
    func everyRefusalHasItsStatus(reason: APNsReason) throws {
        var fixture = try scripted([.refused(reason, timestamp: 17)])
        let answer = try #require(try fixture.answer(to: fixture.request()))
        #expect(answer.status == reason.status && answer.reason == reason.rawValue)
        #expect(answer.body == #"{"reason":"\#(reason.rawValue)","timestamp":17}"#)
        #expect(fixture.apns.record.devices[Self.device]?.taken == 0)
    }

    // MARK: Violations by clients

    @Test func aPushThatWasTakenIsNotRepeated() throws {
        var fixture = try scripted([.take])
        let request = try fixture.request()
        _ = fixture.send(request)
        #expect(fixture.answer(to: request) == .taken)
        #expect(fixture.apns.record.violations == [.repeatedAfterSuccess: 1])
        #expect(fixture.apns.record.duplicates == 1)
    }

    @Test func aPushWhoseAnswerWasLostMayBeRepeated() throws {
        var fixture = try scripted([.silence(isTaken: true), .take])
        let request = try fixture.request()
        _ = fixture.send(request)
        _ = fixture.send(request)
        #expect(fixture.apns.record.violations.isEmpty)
        #expect(fixture.apns.record.duplicates == 1)
    }

    @Test func anAnswerIsLostWithAConnectionThatIsReset() throws {
        var fixture = try scripted([.take])
        let request = try fixture.request()
        _ = fixture.send(request)
        fixture.apns.script("0b", [.resetConnection(isTaken: false)])
        _ = try fixture.send(fixture.request(to: "0b"))
        fixture.connect()
        _ = fixture.send(request)
        #expect(fixture.apns.record.violations.isEmpty)
    }

    @Test(arguments: APNsReason.allCases)
    func onlyARefusalThatMayPassIsRepeated(reason: APNsReason) throws {
        var fixture = try scripted([.refused(reason), .take])
        let request = try fixture.request()
        _ = fixture.send(request)
        _ = fixture.send(request)
        #expect(
            fixture.apns.record.violations
                == (reason.allowsRepeat ? [:] : [.repeatedAfter(reason): 1]))
    }

    @Test(arguments: APNsReason.allCases.filter(\.endsToken))
    func nothingIsPushedToADeadToken(reason: APNsReason) throws {
        var fixture = try scripted([.refused(reason)])
        _ = try fixture.send(fixture.request())
        #expect(fixture.apns.record.violations.isEmpty)
        _ = try fixture.send(fixture.request())
        #expect(fixture.apns.record.violations == [.pushedToDead: 1])
        // A token that is registered again may be used again.
        fixture.apns.script(Self.device, [.take])
        #expect(try fixture.answer(to: fixture.request()) == .taken)
        #expect(fixture.apns.record.violations == [.pushedToDead: 1])
    }

    // MARK: Faults

    @Test func faultsFollowFromTheSeedAndNotFromTheOrder() throws {
        let tokens = (0..<2_000).map { number in
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }
        func outcomes(_ tokens: [String]) throws -> [String: PushBehaviour?] {
            var fixture = try JudgeFixture {
                $0.faults = [
                    PushFault(.refused(.tooManyRequests), share: 50_000),
                    PushFault(.refuseStream, share: 50_000),
                ]
                $0.seed = 7
            }
            try fixture.warmUp()
            for token in tokens { _ = try fixture.send(fixture.request(to: token)) }
            let devices = fixture.apns.record.devices
            return Dictionary(uniqueKeysWithValues: tokens.map { ($0, devices[$0]?.last) })
        }
        let once = try outcomes(tokens)
        #expect(try outcomes(tokens.reversed()) == once)
        for fault in [PushBehaviour.refused(.tooManyRequests), .refuseStream] {
            let count = once.values.filter { $0 == fault }.count
            #expect((60...140).contains(count), "\(count)")
        }
    }
}
