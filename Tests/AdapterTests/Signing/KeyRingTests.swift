import GatewaySigning
import Testing
import WidgetModel

@Suite struct KeyRingTests {
    static let timing = KeyRing.Timing(publishLead: 300, signatureLifetime: 3_600)

    @Test func theFirstKeySignsAtOnce() throws {
        let key = try SigningKey()
        let ring = KeyRing(first: key, timing: Self.timing, now: 1_000)
        #expect(ring.signingKey == key)
        #expect(ring.publishedKeys == JWKSet([key.publicKey]))
        #expect(ring.nextTransition == nil)
    }

    @Test func aKeyIsPublishedThenSignsThenRetires() throws {
        let old = try SigningKey()
        let new = try SigningKey(generating: .es256)
        var ring = KeyRing(first: old, timing: Self.timing, now: 0)
        try ring.rotate(now: 1_000, newKey: new)
        #expect(ring.signingKey == old)
        #expect(ring.publishedKeys == JWKSet([old.publicKey, new.publicKey]))
        #expect(ring.nextTransition == 1_300)

        #expect(ring.advance(now: 1_299).isEmpty)
        #expect(ring.signingKey == old)
        #expect(ring.advance(now: 1_300).isEmpty)
        #expect(ring.signingKey == new)
        #expect(ring.publishedKeys[old.kid] == old.publicKey)
        #expect(ring.nextTransition == 5_200)

        #expect(ring.advance(now: 5_199).isEmpty)
        #expect(ring.publishedKeys[old.kid] != nil)
        #expect(ring.advance(now: 5_200) == [old])
        #expect(ring.publishedKeys == JWKSet([new.publicKey]))
        #expect(ring.nextTransition == nil)
    }

    @Test func aLateCallKeepsTheOldKeySigningAndRetiresItLater() throws {
        let old = try SigningKey()
        var ring = KeyRing(first: old, timing: Self.timing, now: 0)
        try ring.rotate(now: 0, newKey: SigningKey())
        #expect(ring.signingKey == old)
        #expect(ring.advance(now: 90_000).isEmpty)
        #expect(ring.nextTransition == 93_900)
    }

    @Test func aKeyOvertakenByANewerOneStaysPublishedAsIfItHadSigned() throws {
        let (first, second, third) = (try SigningKey(), try SigningKey(), try SigningKey())
        var ring = KeyRing(first: first, timing: Self.timing, now: 0)
        try ring.rotate(now: 10, newKey: second)
        try ring.rotate(now: 20, newKey: third)
        #expect(ring.advance(now: 1_000).isEmpty)
        #expect(ring.signingKey == third)
        #expect(ring.publishedKeys.keys.count == 3)
        #expect(Set(ring.advance(now: 4_900).map(\.kid)) == [first.kid, second.kid])
    }

    @Test func aClockThatGoesBackChangesNothing() throws {
        var ring = KeyRing(first: try SigningKey(), timing: Self.timing, now: 10_000)
        try ring.rotate(now: 10_000, newKey: SigningKey())
        _ = ring.advance(now: 10_300)
        let before = ring
        for now in [10_299, 9_000, 0, Int64.min] { #expect(ring.advance(now: now).isEmpty) }
        #expect(ring == before)
    }

    @Test func noTimeOverflows() throws {
        var ring = KeyRing(
            first: try SigningKey(),
            timing: .init(publishLead: .max, signatureLifetime: .max), now: .max)
        try ring.rotate(now: .max, newKey: SigningKey())
        #expect(ring.advance(now: .max).count == 1)
        #expect(KeyRing.Timing(publishLead: -5, signatureLifetime: -5).publishLead == 0)
    }

    @Test func theRingIsBounded() throws {
        var ring = KeyRing(first: try SigningKey(), timing: Self.timing, now: 0)
        for _ in 1..<KeyRing.keysMax { try ring.rotate(now: 0, newKey: SigningKey()) }
        let full = ring
        let fault = signingFault { try ring.rotate(now: 0, newKey: SigningKey()) }
        #expect(fault?.code == .limitExceeded)
        #expect(ring == full)
    }

    /// Simulates days of rotations at random times, with verifiers that keep a key set as long as
    /// they are allowed to. At every step each of them must know the key of every message still
    /// valid.
    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func everyUnexpiredMessageVerifiesAtEveryMoment(seed: UInt64) throws {
        #expect(try unknownKeys(seed: seed, keepsSetsFor: Self.timing.publishLead) == 0)
    }

    /// The same with verifiers that keep sets four times as long: proves that the test above can
    /// fail.
    @Test func aVerifierThatKeepsASetTooLongMeetsUnknownKeys() throws {
        #expect(try unknownKeys(seed: 1, keepsSetsFor: Self.timing.publishLead * 4) > 0)
    }

    /// The same with an announced lifetime shorter than that of the messages.
    @Test func messagesThatLiveLongerThanAnnouncedMeetUnknownKeys() throws {
        #expect(
            try unknownKeys(
                seed: 1, keepsSetsFor: Self.timing.publishLead,
                messageLifetime: Self.timing.signatureLifetime * 2) > 0)
    }

    /// Simulates thirty days. Returns how often a verifier would have got a valid message with a
    /// key that it does not know.
    private func unknownKeys(
        seed: UInt64, keepsSetsFor cacheTime: Int64, messageLifetime: Int64? = nil
    ) throws -> Int {
        struct Verifier {
            var keys: JWKSet
            var fetched: Int64
        }
        let lifetime = messageLifetime ?? Self.timing.signatureLifetime
        var generator = SplitMix64(seed: seed)
        var now: Int64 = 1_700_000_000
        let end = now + 30 * 24 * 3_600
        var ring = KeyRing(first: try SigningKey(), timing: Self.timing, now: now)
        var verifiers = Array(
            repeating: Verifier(keys: ring.publishedKeys, fetched: now), count: 5)
        var lastExpiry: [String: Int64] = [:]
        var misses = 0
        while now < end {
            now += Int64.random(in: 1...400, using: &generator)
            // A verifier that fetches just before a rotation keeps the old set longest.
            func fetch(chance: Int) {
                for index in verifiers.indices {
                    let isStale = now - verifiers[index].fetched >= cacheTime
                    if isStale || Int.random(in: 0..<chance, using: &generator) == 0 {
                        verifiers[index] = Verifier(keys: ring.publishedKeys, fetched: now)
                    }
                }
            }
            fetch(chance: 4)
            if Int.random(in: 0..<60, using: &generator) == 0 {
                // A full ring rejects the rotation and the operator is informed; here it just means
                // no rotation.
                try? ring.rotate(now: now, newKey: SigningKey())
            }
            if Int.random(in: 0..<3, using: &generator) > 0 { _ = ring.advance(now: now) }
            lastExpiry[ring.signingKey.kid] = now + lifetime
            fetch(chance: 8)
            lastExpiry = lastExpiry.filter { $0.value > now }
            for verifier in verifiers {
                misses += lastExpiry.keys.count { verifier.keys[$0] == nil }
            }
        }
        return misses
    }
}

extension KeyRing {
    /// The time at which ``advance(now:)`` will next change a state; `nil` when no rotation is
    /// pending.
    fileprivate var nextTransition: Int64? {
        others.compactMap { entry in
            switch entry.state {
            case .published(let time), .retiring(let time): time
            case .signing: nil
            }
        }.min()
    }
}
