import Testing

@testable import GatewayCore

@Suite struct ProviderTokenAgeTests {
    static let minute: Int64 = 60_000

    @Test func `a token is minted once and used for fifty-five minutes`() {
        var age = ProviderTokenAge()
        #expect(age.token(now: 0, wall: 0) == nil)
        let token = age.minted(now: 0, wall: 0)
        for minute in 0..<55 as Range<Int64> {
            #expect(age.token(now: minute * Self.minute, wall: minute * Self.minute) == token)
        }
        #expect(age.token(now: 55 * Self.minute, wall: 55 * Self.minute) == nil)
        let next = age.minted(now: 55 * Self.minute, wall: 55 * Self.minute)
        #expect(next.number == 2)
        #expect(age.token(now: 56 * Self.minute, wall: 56 * Self.minute) == next)
    }

    @Test(arguments: [(54 as Int64, true), (55, false), (-1, true), (-2, false)])
    func `a token whose own time does not fit the clock any more is replaced`(
        wall: Int64, isFit: Bool
    ) {
        var age = ProviderTokenAge()
        let token = age.minted(now: 0, wall: 0)
        #expect(age.token(now: 1, wall: wall * Self.minute) == (isFit ? token : nil))
    }

    @Test func `of many pushes that hear it expired the first mints and the rest follow`() {
        var age = ProviderTokenAge()
        let token = age.minted(now: 0, wall: 0)
        let now = 20 * Self.minute
        #expect(age.expired(token, now: now, wall: now) == .mint)
        let next = age.minted(now: now, wall: now)
        #expect(age.expired(token, now: now + 1, wall: now + 1) == .useCurrent)
        // A new token that is refused too is not replaced by a third.
        #expect(age.expired(next, now: now + 1, wall: now + 1) == .clockIsWrong)
    }

    @Test func `a young token that expired tells of a wrong clock`() {
        var age = ProviderTokenAge()
        let token = age.minted(now: 0, wall: 0)
        let now = 20 * Self.minute - 1
        #expect(age.expired(token, now: now, wall: now) == .clockIsWrong)
        // The clock was corrected meanwhile, so another token will do.
        #expect(age.expired(token, now: now, wall: now + 90 * Self.minute) == .mint)
    }

    @Test func `a token refused as too soon gives way to the older while that is of use`() {
        var age = ProviderTokenAge()
        let first = age.minted(now: 0, wall: 0)
        age.refusedAsTooSoon(first)
        #expect(age.token(now: 0, wall: 0) == first)
        let second = age.minted(now: 10 * Self.minute, wall: 10 * Self.minute)
        age.refusedAsTooSoon(first)
        #expect(age.token(now: 11 * Self.minute, wall: 11 * Self.minute) == second)
        age.refusedAsTooSoon(second)
        #expect(age.token(now: 54 * Self.minute, wall: 54 * Self.minute) == first)
        #expect(age.token(now: 55 * Self.minute, wall: 55 * Self.minute) == second)
        #expect(age.token(now: 65 * Self.minute, wall: 65 * Self.minute) == nil)
    }
}

extension ProviderTokenAge {
    /// Records a token that is created now.
    fileprivate mutating func minted(now: Int64, wall: Int64) -> Token {
        adopted(issuedAt: wall, now: now, wall: wall)
    }
}
