import COpenSSL
import GatewaySigning
import Testing
import WidgetModel

@Suite struct JWSTests {
    let key: SigningKey
    let keys: JWKSet

    init() throws {
        key = try SigningKey()
        keys = JWKSet([key.publicKey])
    }

    func header(_ more: String = "", alg: String = "EdDSA", kid: String? = nil) -> String {
        #"{"alg":"\#(alg)","kid":"\#(kid ?? key.kid)","typ":"timeline-reload+jwt"\#(more)}"#
    }

    func rejection(_ compact: [UInt8], as type: JWSType = .reload) -> JWSRejection? {
        do throws(JWSRejection) {
            let jws = try JWS(parsing: compact, bytesMax: JWS.notificationBytesMax)
            _ = try jws.verifiedPayload(by: keys, as: type)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: SigningAlgorithm.allCases)
    func whatIsSignedIsReadBack(_ algorithm: SigningAlgorithm) throws {
        let key = try SigningKey(generating: algorithm)
        for payload in ["", "{}", #"{"seq":1}"#, String(repeating: "x", count: 10_000)] {
            let compact = try JWSSigner.reloads(key).sign(payload: bytes(payload))
            let jws = try JWS(parsing: compact, bytesMax: JWS.notificationBytesMax)
            #expect(jws.kid == key.kid)
            #expect(
                try jws.verifiedPayload(by: JWKSet([key.publicKey]), as: .reload) == bytes(payload))
        }
    }

    @Test func theHeaderIsTheOneAskedFor() throws {
        let compact = text(try JWSSigner.reloads(key).sign(payload: bytes("{}")))
        let first = try #require(compact.split(separator: ".").first)
        #expect(text(try #require(Base64.url.decode(String(first)))) == header())
        let provider = JWSSigner(key: key, type: nil, kid: "TEAM")
        let second = try #require(
            text(try provider.sign(payload: [])).split(separator: ".").first)
        #expect(
            text(try #require(Base64.url.decode(String(second))))
                == #"{"alg":"EdDSA","kid":"TEAM"}"#
        )
    }

    /// Replaces every byte with every other letter that is allowed there: nothing else verifies.
    @Test func noByteOfACompactTextMayChange() throws {
        let compact = try JWSSigner.reloads(key).sign(payload: bytes(#"{"seq":42}"#))
        #expect(rejection(compact) == nil)
        for index in compact.indices {
            for letter in bytes("Aa0-_.=") where letter != compact[index] {
                var changed = compact
                changed[index] = letter
                #expect(rejection(changed) != nil)
            }
            var shorter = compact
            shorter.remove(at: index)
            #expect(rejection(shorter) != nil)
        }
        for more in ["A", "=", ".", ".A", " ", "\n"] {
            #expect(rejection(compact + bytes(more)) == .malformed || more == "A")
            #expect(rejection(compact + bytes(more)) != nil)
        }
    }

    @Test func anAlgorithmOtherThanTheKeysIsRefused() throws {
        for name in ["ES256", "HS256", "none", "None", "", "RS256", "edDSA", "Ed448"] {
            let compact = try forge(header: header(alg: name), payload: "{}", by: key)
            #expect(rejection(compact) == .wrongAlgorithm)
        }
        let newer = try forge(header: header(alg: "Ed25519"), payload: "{}", by: key)
        #expect(rejection(newer) == nil)
        let p256 = try SigningKey(generating: .es256)
        let swapped = try forge(header: header(alg: "ES256"), payload: "{}", by: p256)
        #expect(rejection(swapped) == .wrongAlgorithm)
        let other = try forge(header: header(), payload: "{}", by: p256)
        #expect(rejection(other) == .badSignature)
    }

    /// RFC 8725 section 2.1: the public key, which is known to all, used as the secret of an HMAC.
    @Test func anHMACWithThePublicKeyAsItsSecretIsRefused() throws {
        let raw = try #require(key.publicJWK["x"]?.stringValue.flatMap { Base64.url.decode($0) })
        for secret in [raw, try key.publicKey.pem(), JSONValue.object(key.publicJWK).serialized] {
            let input = Base64.url.string(bytes(header(alg: "HS256"))) + ".e30"
            var mac = [UInt8](repeating: 0, count: 32)
            var length = 0
            #expect(
                EVP_Q_mac(
                    nil, "HMAC", nil, "SHA256", nil, secret, secret.count, bytes(input),
                    input.utf8.count, &mac, mac.count, &length) != nil)
            #expect(length == 32)
            let compact = bytes(input + "." + Base64.url.string(mac))
            #expect(rejection(compact) == .wrongAlgorithm)
        }
    }

    @Test func aTextWithoutSignatureIsRefused() {
        let none = Base64.url.string(bytes(header(alg: "none"))) + ".e30."
        #expect(rejection(bytes(none)) == .wrongAlgorithm)
        let honest = Base64.url.string(bytes(header())) + ".e30."
        #expect(rejection(bytes(honest)) == .badSignature)
    }

    @Test func anUnknownOrMissingKidIsRefused() throws {
        #expect(
            rejection(try forge(header: header(kid: "other"), payload: "{}", by: key))
                == .unknownKey)
        for head in [
            #"{"alg":"EdDSA","typ":"timeline-reload+jwt"}"#,
            #"{"alg":"EdDSA","kid":7,"typ":"timeline-reload+jwt"}"#,
            header(kid: String(repeating: "k", count: 257)),
        ] {
            #expect(rejection(try forge(header: head, payload: "{}", by: key)) == .malformed)
        }
    }

    @Test(arguments: [#"["exp"]"#, "[]", "null", #"["b64"],"b64":false"#])
    func critIsRefusedWhateverItHolds(_ value: String) throws {
        let compact = try forge(header: header(#","crit":\#(value)"#), payload: "{}", by: key)
        #expect(rejection(compact) == .criticalHeader)
    }

    @Test func aKeyInTheHeaderIsNotListenedTo() throws {
        let stranger = try SigningKey()
        let jwk = JSONValue.object(stranger.publicJWK).text
        let compact = try forge(
            header: header(#","jwk":\#(jwk),"jku":"https://evil.example/keys""#), payload: "{}",
            by: stranger)
        #expect(rejection(compact) == .badSignature)
    }

    @Test func theTypeMustBeTheOneExpected() throws {
        func compact(_ type: String?) throws -> [UInt8] {
            try JWSSigner(key: key, type: type).sign(payload: bytes("{}"))
        }
        for type in ["JWT", "jwt", "at+jwt", "application/at+jwt", nil] {
            #expect(rejection(try compact(type)) == .wrongType)
            #expect(rejection(try compact(type), as: .token) == nil)
        }
        for type in ["timeline-reload+jwt", "application/Timeline-Reload+JWT"] {
            #expect(rejection(try compact(type)) == nil)
            #expect(rejection(try compact(type), as: .token) == .wrongType)
        }
        #expect(rejection(try compact("secevent+jwt"), as: .token) == .wrongType)
        let number = #"{"alg":"EdDSA","kid":"\#(key.kid)","typ":1}"#
        #expect(rejection(try forge(header: number, payload: "{}", by: key)) == .malformed)
    }

    @Test func aHeaderWithTwoMembersOfOneNameIsRefused() throws {
        let compact = try forge(
            header: #"{"alg":"none","alg":"EdDSA","kid":"\#(key.kid)"}"#, payload: "{}", by: key)
        #expect(rejection(compact, as: .token) == .malformed)
    }

    @Test(arguments: [
        "", ".", "..", "...", "a", "e30", "e30.e30", "e30.e30.e30", "e30.e30.e30.e30", "!.e30.e30",
        "W10.e30.e30", "bnVsbA.e30.AA", "e30.e30.A",
    ])
    func whatIsNoCompactTextIsRefused(_ compact: String) {
        #expect(rejection(bytes(compact)) == .malformed)
    }

    @Test func theLimitOfItsKindIsKept() throws {
        let payload = [UInt8](repeating: UInt8(ascii: "x"), count: 9_000)
        let compact = try JWSSigner.reloads(key).sign(payload: payload)
        #expect(compact.count > JWS.tokenBytesMax)
        #expect(throws: JWSRejection.tooLarge) {
            try JWS(parsing: compact, bytesMax: JWS.tokenBytesMax)
        }
        #expect(rejection(compact) == nil)
        let longer = try JWSSigner.reloads(key).sign(payload: payload + payload)
        #expect(rejection(longer) == .tooLarge)
    }

    @Test func randomBytesNeverPassAndNeverTrap() throws {
        var generator = SplitMix64(seed: 0x5EED)
        let compact = try JWSSigner.reloads(key).sign(payload: bytes(#"{"seq":42}"#))
        for _ in 0..<5_000 {
            var changed = compact
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let index = Int.random(in: changed.indices, using: &generator)
                switch Int.random(in: 0...2, using: &generator) {
                case 0: changed[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: changed.remove(at: index)
                default: changed.insert(UInt8.random(in: 0...255, using: &generator), at: index)
                }
            }
            if changed != compact { #expect(rejection(changed) != nil) }
        }
    }
}
