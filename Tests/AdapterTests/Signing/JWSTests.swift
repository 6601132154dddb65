import COpenSSL
import Foundation
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

    func rejection(_ compact: [UInt8], as type: JWSType = .reload) -> TokenRejection? {
        do throws(TokenRejection) {
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
        #expect(throws: TokenRejection.tooLarge) {
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

/// The examples in the standards themselves.
@Suite struct RFCVectorTests {
    static let ed25519JWK: JSONObject = [
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    ]
    static let p256JWK: JSONObject = [
        "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    ]

    @Test func `RFC 5869, A.3, is reproduced`() throws {
        let key = try derivedKey(from: [UInt8](repeating: 0x0B, count: 22), for: "", count: 42)
        let hex = key.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        #expect(
            hex == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                + "9d201395faa4b61a96c8")
    }

    @Test func theEd25519ExampleOfRFC8037IsReproduced() throws {
        let seed = try #require(Base64.url.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"))
        // PKCS#8 of an Ed25519 key (RFC 8410 section 7): fixed except for the seed.
        let prefix: [UInt8] = [
            0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22,
            0x04, 0x20,
        ]
        let body = Data(prefix + seed).base64EncodedString()
        let key = try SigningKey(
            pem: bytes("-----BEGIN PRIVATE KEY-----\n\(body)\n-----END PRIVATE KEY-----\n"))
        #expect(key.publicJWK["x"] == Self.ed25519JWK["x"])
        #expect(key.kid == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")

        let input = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
        let signature =
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        #expect(Base64.url.string(try key.sign(bytes(input))) == signature)
        let published = try VerificationKey(jwk: Self.ed25519JWK)
        #expect(published.kid == key.kid)
        #expect(published.verify(try #require(Base64.url.decode(signature)), over: bytes(input)))
    }

    @Test func theES256ExampleOfRFC7515Verifies() throws {
        let key = try VerificationKey(jwk: Self.p256JWK)
        let input =
            "eyJhbGciOiJFUzI1NiJ9."
            + "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl"
            + "LmNvbS9pc19yb290Ijp0cnVlfQ"
        let signature = try #require(
            Base64.url.decode(
                "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djx"
                    + "La8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
            ))
        #expect(key.verify(signature, over: bytes(input)))
        #expect(!key.verify(signature, over: bytes(input + "A")))
    }

    /// The example key of RFC 7638 is RSA, which is not supported here. That of RFC 8037 appendix
    /// A.3 follows the same rule, and for P-256 the canonical JSON is written by hand.
    @Test func thumbprintsFollowRFC7638() throws {
        let ed25519 = try VerificationKey(jwk: Self.ed25519JWK)
        #expect(ed25519.kid == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
        let canonical =
            #"{"crv":"P-256","kty":"EC","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
            + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#
        let digest = try SHA256Digest(of: bytes(canonical))
        #expect(try VerificationKey(jwk: Self.p256JWK).kid == Base64.url.string(digest.bytes))
    }

    @Test func sha256OfABC() throws {
        let hex = try SHA256Digest(of: bytes("abc")).bytes.map { String($0, radix: 16) }
        #expect(hex.prefix(4) == ["ba", "78", "16", "bf"])
        #expect(hex.suffix(2) == ["15", "ad"])
    }
}
