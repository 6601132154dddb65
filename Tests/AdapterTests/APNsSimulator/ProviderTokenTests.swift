import APNsSimulator
import Testing

/// The rules of provider tokens, and of their changes.
@Suite struct ProviderTokenTests {
    private static let minute: Int64 = 60_000

    private func answer(
        _ terms: (inout SimulatedAPNs.Terms) throws -> Void = { _ in },
        _ authorization: (TeamKey) throws -> String?
    ) throws -> PushAnswer? {
        var fixture = try JudgeFixture(terms)
        var request = try fixture.request()
        request.authorization = try authorization(fixture.team)
        return fixture.answer(to: request)
    }

    private static let second = JudgeFixture.start.wall / 1_000

    @Test func aTokenOfTheTeamIsNeeded() throws {
        #expect(try answer { _ in nil } == .refused(.missingProviderToken))
        #expect(try answer { _ in "Basic abc" } == .refused(.missingProviderToken))
        let stranger = try TeamKey().bearer(issuedAt: Self.second)
        for foreign in ["bearer abc", stranger] {
            #expect(try answer { _ in foreign } == .refused(.invalidProviderToken))
        }
        let answered = try answer { try $0.bearer(issuedAt: Self.second, team: "OTHER") }
        #expect(answered == .refused(.invalidProviderToken))
    }

    @Test(arguments: [
        (0 as Int64, PushAnswer.taken), (3_600, .taken), (3_601, .refused(.expiredProviderToken)),
        (-60, .taken), (-61, .refused(.invalidProviderToken)),
    ])
    func aTokenHoldsForAnHour(age: Int64, expected: PushAnswer) throws {
        #expect(try answer { try $0.bearer(issuedAt: Self.second - age) } == expected)
    }

    @Test func aKeyOfTheOtherEnvironmentIsRefused() throws {
        let team = try TeamKey()
        var fixture = try JudgeFixture { $0.keys = [try team.registered([.production])] }
        var request = try fixture.request()
        request.authorization = try team.bearer(issuedAt: Self.second)
        #expect(fixture.answer(to: request) == .refused(.badEnvironmentKeyIDInToken))
    }

    @Test func anotherKeyOnTheConnectionIsRefused() throws {
        let other = try TeamKey(id: "OTHER12345")
        var fixture = try JudgeFixture { $0.keys.append(try other.registered()) }
        try fixture.warmUp()
        var request = try fixture.request()
        request.authorization = try other.bearer(issuedAt: Self.second)
        #expect(fixture.answer(to: request) == .refused(.unrelatedKeyIDInToken))
        fixture.connect()
        #expect(fixture.answer(to: request) == .taken)
    }

    @Test(arguments: [(19 as Int64, false), (20, true)])
    func aTokenIsUsed20MinutesOnAConnection(minutes: Int64, isTaken: Bool) throws {
        var fixture = try JudgeFixture()
        try fixture.warmUp()
        fixture.moment.now += minutes * Self.minute
        var request = try fixture.request()
        request.authorization = try fixture.team.bearer(issuedAt: Self.second + 1)
        #expect(
            fixture.answer(to: request)
                == (isTaken ? .taken : .refused(.tooManyProviderTokenUpdates)))
        // If the new token is rejected, the previous one stays valid.
        if !isTaken { #expect(try fixture.answer(to: fixture.request()) == .taken) }
    }
}
