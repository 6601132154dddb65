import GatewaySigning
import Testing
import WidgetModel

@Suite struct JWKSetTests {
    @Test func aSetSurvivesItsText() throws {
        let keys = JWKSet([
            try SigningKey(generating: .edDSA).publicKey,
            try SigningKey(generating: .es256).publicKey,
        ])
        let read = try JWKSet(parsing: keys.serialized)
        #expect(read == keys)
        #expect(read.skipped.isEmpty)
        for key in keys.keys { #expect(read[key.kid] == key) }
        #expect(read["nobody"] == nil)
        #expect(!text(keys.serialized).contains("\"d\""))
    }

    @Test func keysThatCannotBeUsedAreSkippedAndTheRestIsInForce() throws {
        let good = try SigningKey()
        let x = try #require(good.publicJWK["x"]?.stringValue)
        let point = try SigningKey(generating: .es256).publicJWK
        let px = try #require(point["x"]?.stringValue)
        let broken = [
            #"{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"rsa"}"#,
            #"{"kty":"oct","k":"AQAB"}"#,
            #"{"crv":"Ed25519","x":"\#(x)"}"#,
            #"{"kty":"OKP","crv":"X25519","x":"\#(x)"}"#,
            #"{"kty":"OKP","crv":"Ed25519"}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":17}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)="}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"AQAB"}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)","use":"enc"}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)","key_ops":["sign"]}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)","alg":"ES256"}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)","alg":"none"}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)","kid":7}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)","kid":""}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)","d":"\#(x)"}"#,
            #"{"kty":"EC","crv":"P-256","x":"\#(px)","y":"\#(px)"}"#,
            #"{"kty":"EC","crv":"P-256","x":"\#(px)"}"#,
            #"{"kty":"EC","crv":"P-384","x":"\#(px)","y":"\#(px)"}"#,
            #""a string""#,
        ]
        let last = #"{"kty":"OKP","crv":"Ed25519","x":"\#(x)","kid":"mine","later":{"a":[1]}}"#
        let list = (broken + [last]).joined(separator: ",")
        let set = try JWKSet(parsing: bytes(#"{"keys":[\#(list)],"note":"ignored"}"#))
        #expect(set.keys.map(\.kid) == ["mine"])
        #expect(set.skipped.count == broken.count)
        let message = bytes("hello")
        #expect(try #require(set["mine"]).verify(try good.sign(message), over: message))
    }

    @Test func theNewerNameOfEd25519IsKnown() throws {
        var jwk = try SigningKey().publicJWK
        jwk["alg"] = "Ed25519"
        #expect(try VerificationKey(jwk: jwk).algorithms == [.edDSA])
    }

    @Test func `a single key counts as a set of one`() throws {
        let key = try SigningKey().publicKey
        #expect(try JWKSet(.object(key.jwk)).keys == [key])
        #expect(!JWKSet([key]).repeatsKids)
    }

    @Test func ofTwoKeysWithOneNameTheFirstStays() throws {
        var first = try SigningKey().publicJWK
        var second = try SigningKey().publicJWK
        first["kid"] = "same"
        second["kid"] = "same"
        let set = try JWKSet(.object(["keys": [.object(first), .object(second)]]))
        #expect(set.keys.count == 1)
        #expect(set.repeatsKids)
        #expect(set["same"]?.jwk["x"] == first["x"])
        #expect(set.skipped.count == 1)
    }

    @Test(arguments: ["", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[],"keys":[]}"#])
    func whatIsNoSetIsRefused(_ text: String) {
        #expect(signingFault { try JWKSet(parsing: bytes(text)) }?.code == .documentMalformed)
    }

    @Test func theLimitsAreKept() throws {
        let many = #"{"keys":["# + Array(repeating: "{}", count: 101).joined(separator: ",") + "]}"
        let long = #"{"keys":[]}"# + String(repeating: " ", count: JWKSet.bytesMax)
        for text in [many, long] {
            #expect(signingFault { try JWKSet(parsing: bytes(text)) }?.code == .limitExceeded)
        }
    }
}

@Suite struct KeySetScheduleTests {
    private static func fetched(maxAge: Int64?) -> KeySetSchedule {
        var schedule = KeySetSchedule(now: 0)
        Self.begins(&schedule, at: 0)
        schedule.succeeded(maxAge: maxAge, now: 0)
        return schedule
    }

    private static func begins(
        _ schedule: inout KeySetSchedule, at now: Int64, _ isExpected: Bool = true
    ) {
        let begins = schedule.begin(now: now)
        #expect(begins == isExpected)
    }

    /// Returns when the next fetch begins, looking at every second.
    private static func next(_ schedule: KeySetSchedule, from start: Int64) -> Int64? {
        var schedule = schedule
        return (start...start + 100_000).first { schedule.begin(now: $0) }
    }

    @Test(
        arguments: [
            (nil, 300), (0, 60), (-5, 60), (60, 60), (3_600, 3_600), (86_400, 86_400),
            (.max, 86_400),
        ] as [(Int64?, Int64)])
    func `a set is fetched again at its age, within limits`(_ maxAge: Int64?, _ next: Int64) {
        #expect(Self.next(Self.fetched(maxAge: maxAge), from: 0) == next)
    }

    @Test func `only one fetch is in flight`() {
        var schedule = KeySetSchedule(now: 0)
        Self.begins(&schedule, at: 0)
        schedule.missesKey(now: 10)
        Self.begins(&schedule, at: 1_000_000, false)
    }

    @Test func `an unknown key brings the fetch forward, at most every 30 seconds`() {
        var schedule = Self.fetched(maxAge: 3_600)
        schedule.missesKey(now: 1)
        #expect(Self.next(schedule, from: 1) == 30)
        schedule = Self.fetched(maxAge: 3_600)
        schedule.missesKey(now: 1_000)
        #expect(Self.next(schedule, from: 1_000) == 1_000)
        // It never defers one.
        schedule = Self.fetched(maxAge: 60)
        schedule.missesKey(now: 59)
        #expect(Self.next(schedule, from: 59) == 59)
        schedule.missesKey(now: 70)
        #expect(Self.next(schedule, from: 70) == 70)
    }

    @Test func `failures follow later each time, up to 5 minutes`() {
        var schedule = KeySetSchedule(now: 0)
        var now: Int64 = 0
        var waits: [Int64] = []
        for _ in 0..<9 {
            Self.begins(&schedule, at: now)
            schedule.failed(now: now, random: .max)
            #expect(schedule.isFailing)
            let next = Self.next(schedule, from: now) ?? .max
            waits.append(next - now)
            now = next
        }
        #expect(waits == [4, 10, 20, 40, 80, 160, 300, 300, 300])
        Self.begins(&schedule, at: now)
        schedule.succeeded(maxAge: 600, now: now)
        #expect(!schedule.isFailing)
        #expect(Self.next(schedule, from: now) == now + 600)
    }

    @Test func `a failed fetch is due at once after a change of configuration, no other is`() {
        var schedule = Self.fetched(maxAge: 3_600)
        schedule.retry(now: 10)
        #expect(Self.next(schedule, from: 10) == 3_600)
        Self.begins(&schedule, at: 3_600)
        schedule.failed(now: 3_600, random: .max)
        schedule.retry(now: 3_601)
        Self.begins(&schedule, at: 3_601)
        schedule.retry(now: 3_602)
        Self.begins(&schedule, at: 3_602, false)
    }

    /// However many tokens name unknown keys, whatever the responses say.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `an issuer is never asked more often than its limits allow`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var schedule = KeySetSchedule(now: 0)
        var begins: [(time: Int64, succeeded: Bool)] = []
        for now in 0..<Int64(5_000) {
            if random.next() % 3 == 0 { schedule.missesKey(now: now) }
            guard schedule.begin(now: now) else { continue }
            let succeeds = random.next() % 2 == 0
            begins.append((now, succeeds))
            if succeeds {
                schedule.succeeded(maxAge: Int64(random.next() % 500) - 10, now: now)
            } else {
                schedule.failed(now: now, random: random.next())
            }
        }
        #expect(begins.count > 10)
        for (one, next) in zip(begins, begins.dropFirst()) {
            // Failures are retried sooner: the first after at least half of 5 seconds.
            #expect(next.time - one.time >= (one.succeeded ? 30 : 2))
        }
    }

    @Test(
        arguments: [
            ("max-age=60", 60), ("public, max-age=3600, must-revalidate", 3_600),
            ("MAX-AGE=\"5\"", 5), (" max-age = 7 ", 7), ("no-store", 0), ("no-cache, max-age=9", 0),
            ("max-age=99999999999999999999", .max), ("max-age=", nil), ("max-age=-1", nil),
            ("max-age=1.5", nil), ("s-maxage=9", nil), ("", nil), (",,=,", nil),
        ] as [(String, Int64?)])
    func `the age of a response is read`(_ text: String, _ age: Int64?) {
        #expect(CacheControl.maxAge(text) == age)
    }
}
