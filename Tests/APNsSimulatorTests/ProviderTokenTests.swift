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

    @Test func aTokenIsNeeded() throws {
        #expect(try answer { _ in nil } == .refused(.missingProviderToken))
        #expect(try answer { _ in "Basic abc" } == .refused(.missingProviderToken))
    }

    @Test func aTokenOfNobodyIsRefused() throws {
        #expect(try answer { _ in "bearer abc" } == .refused(.invalidProviderToken))
        let stranger = try TeamKey()
        let answered = try answer { _ in try stranger.bearer(issuedAt: Self.second) }
        #expect(answered == .refused(.invalidProviderToken))
    }

    @Test func aTokenForAnotherTeamIsRefused() throws {
        let answered = try answer { try $0.bearer(issuedAt: Self.second, team: "OTHER") }
        #expect(answered == .refused(.invalidProviderToken))
    }

    @Test(arguments: [(0 as Int64, true), (3_600, true), (3_601, false)])
    func aTokenExpiresAfterAnHour(age: Int64, isTaken: Bool) throws {
        let answered = try answer { try $0.bearer(issuedAt: Self.second - age) }
        #expect(answered == (isTaken ? .taken : .refused(.expiredProviderToken)))
    }

    @Test(arguments: [(60 as Int64, true), (61, false)])
    func aTokenOfTheFutureIsRefused(ahead: Int64, isTaken: Bool) throws {
        let answered = try answer { try $0.bearer(issuedAt: Self.second + ahead) }
        #expect(answered == (isTaken ? .taken : .refused(.invalidProviderToken)))
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
