import Foundation
import Testing
import WidgetModel

@testable import GatewaySigning

@Suite struct RSAKeyTests {
    /// The key of RFC 7638 section 3.1.
    static let jwk: JSONObject = [
        "kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
        "n":
            "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
    ]

    @Test func `a JWK survives being read and has the thumbprint of the RFC`() throws {
        let key = try VerificationKey(jwk: Self.jwk)
        #expect(key.kid == "2011-04-29")
        #expect(key.algorithms == [.rs256])
        #expect(key.jwk["n"] == Self.jwk["n"])
        #expect(key.jwk["e"] == "AQAB")
        var unnamed = Self.jwk
        unnamed["kid"] = nil
        unnamed["alg"] = nil
        let other = try VerificationKey(jwk: unnamed)
        #expect(other.kid == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
        #expect(other.algorithms == [.rs256, .ps256])
        #expect(other.jwk["alg"] == nil)
        #expect(other != key)
        let again = try VerificationKey(pem: other.pem())
        #expect(again == other)
    }

    @Test func `keys that are too short, too long or malformed are refused`() throws {
        func refusal(_ changes: JSONObject) -> String? {
            var jwk = Self.jwk
            for member in changes.members { jwk[member.name] = member.value }
            return signingFault { try VerificationKey(jwk: jwk) }?.message
        }
        func number(_ bytes: [UInt8]) -> JSONValue { .string(Base64.url.string(bytes)) }
        let modulus = try #require(Base64.url.decode(Self.jwk["n"]?.stringValue ?? ""))
        #expect(refusal(["n": number(modulus)]) == nil)
        var short = modulus
        short[0] = 0x7F
        for wrong: JSONObject in [
            ["n": number(Array(modulus.prefix(128)))], ["n": number(short)],
            ["n": number([0] + modulus)], ["n": number(modulus.dropLast() + [2])],
            ["n": number(modulus + modulus + modulus + modulus + [1])], ["n": "a b"], ["n": ""],
            ["e": ""], ["e": number([1])], ["e": number([2])], ["e": number([0, 1, 0, 1])],
            ["e": number([1, 0, 0, 0, 1])], ["e": 65537],
        ] {
            #expect(refusal(wrong)?.contains("2048 to 8192 bits") == true, "\(wrong)")
        }
        #expect(refusal(["alg": "ES256"]) == "alg is not RS256 or PS256")
        #expect(refusal(["alg": "RSA-OAEP"]) == "alg is not RS256 or PS256")
        #expect(refusal(["use": "enc"]) == "use is not sig")
        #expect(refusal(["d": "AQAB"]) == "it contains the private key")
    }

    /// A private key of openssl, and its public key.
    private struct Pair {
        let directory = try? TemporaryDirectory()
        let publicKey: VerificationKey

        init(bits: Int = 2_048) throws {
            let path = try #require(directory).path
            _ = try Tool.run([
                "openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:\(bits)",
                "-out", path + "/key.pem",
            ])
            let pem = try Tool.run(["openssl", "pkey", "-in", path + "/key.pem", "-pubout"]).output
            publicKey = try VerificationKey(pem: bytes(pem + "\n"))
        }

        func sign(_ message: String, _ options: [String] = []) throws -> [UInt8] {
            let directory = try #require(directory)
            try directory.write(message, to: "message")
            let path = directory.path
            let signed = try Tool.run(
                ["openssl", "dgst", "-sha256", "-sign", path + "/key.pem", "-out", path + "/made"]
                    + options + [path + "/message"])
            #expect(signed.status == 0)
            return Array(try Data(contentsOf: URL(filePath: path + "/made")))
        }
    }

    private static func pss(salt: Int) -> [String] {
        ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:\(salt)"]
    }

    @Test(.enabled(if: Tool.hasOpenSSL, needsOpenSSL))
    func `a signature verifies with its algorithm and no other`() throws {
        let pair = try Pair()
        let message = bytes("a message")
        let rs256 = try pair.sign("a message")
        let ps256 = try pair.sign("a message", Self.pss(salt: 32))
        let longSalt = try pair.sign("a message", Self.pss(salt: 64))
        let key = pair.publicKey
        #expect(key.verify(rs256, over: message, with: .rs256))
        #expect(key.verify(ps256, over: message, with: .ps256))
        #expect(!key.verify(rs256, over: message, with: .ps256))
        #expect(!key.verify(ps256, over: message, with: .rs256))
        #expect(!key.verify(longSalt, over: message, with: .ps256))
        for algorithm in [VerificationAlgorithm.edDSA, .es256] {
            #expect(!key.verify(rs256, over: message, with: algorithm))
        }
        #expect(!key.verify(rs256, over: bytes("another message"), with: .rs256))
        #expect(!key.verify(rs256.dropLast(), over: message, with: .rs256))
        #expect(!key.verify([], over: message, with: .rs256))
        for place in [0, 100, 255] {
            var changed = rs256
            changed[place] ^= 1
            #expect(!key.verify(changed, over: message, with: .rs256))
        }
    }

    @Test func `an assertion is signed by RS256, and no other key is a service account's`() throws {
        let key = try ServiceAccountKey()
        #expect(try ServiceAccountKey(pem: key.pem()) == key)
        let parts = try key.assertion(["iss": "a"], kid: "1").split(separator: ".")
        #expect(parts.count == 3)
        let header = try #require(Base64.url.decode(parts[0].utf8))
        #expect(try JSONValue(parsing: header) == ["alg": "RS256", "kid": "1", "typ": "JWT"])
        let signature = try #require(Base64.url.decode(parts[2].utf8))
        let message = bytes("\(parts[0]).\(parts[1])")
        #expect(key.publicKey.verify(signature, over: message, with: .rs256))
        #expect(throws: SigningError.self) {
            try ServiceAccountKey(pem: SigningKey(generating: .es256).pem())
        }
        #expect(throws: SigningError.self) { try SigningKey(pem: key.pem()) }
    }

    @Test(.enabled(if: Tool.hasOpenSSL, needsOpenSSL))
    func `a key of 1,024 bits is refused in PEM, too`() {
        #expect(throws: SigningError.self) { try Pair(bits: 1_024) }
    }

    @Test(.enabled(if: Tool.hasOpenSSL, needsOpenSSL))
    func `the header chooses among the algorithms of the key only`() throws {
        let pair = try Pair()
        var jwk = pair.publicKey.jwk
        jwk["alg"] = "RS256"
        let narrow = try VerificationKey(jwk: jwk)
        let ed25519 = try SigningKey()
        func token(_ algorithm: String, kid: String, options: [String] = []) throws -> JWS {
            let input =
                Base64.url.string(bytes(#"{"alg":"\#(algorithm)","kid":"\#(kid)","typ":"JWT"}"#))
                + "." + Base64.url.string(bytes("{}"))
            let signature = try pair.sign(input, options)
            return try JWS(
                parsing: bytes(input + "." + Base64.url.string(signature)),
                bytesMax: JWS.tokenBytesMax)
        }
        func rejection(_ jws: JWS, _ set: JWKSet) -> TokenRejection? {
            do throws(TokenRejection) {
                _ = try jws.verifiedPayload(by: set, as: .token)
                return nil
            } catch {
                return error
            }
        }
        let (wide, kid) = (JWKSet([pair.publicKey, ed25519.publicKey]), pair.publicKey.kid)
        let options = Self.pss(salt: 32)
        #expect(rejection(try token("RS256", kid: kid), wide) == nil)
        #expect(rejection(try token("PS256", kid: kid, options: options), wide) == nil)
        #expect(rejection(try token("PS256", kid: kid), wide) == .badSignature)
        let ps256 = try token("PS256", kid: kid, options: options)
        #expect(rejection(ps256, JWKSet([narrow])) == .wrongAlgorithm)
        for other in ["EdDSA", "ES256", "HS256", "none", "RS512"] {
            #expect(rejection(try token(other, kid: kid), wide) == .wrongAlgorithm)
        }
        #expect(rejection(try token("RS256", kid: ed25519.kid), wide) == .wrongAlgorithm)
        var encryption = jwk
        encryption["use"] = "enc"
        let unusable = try JWKSet(.object(["keys": [.object(encryption)]]))
        #expect(rejection(try token("RS256", kid: kid), unusable) == .unusableKey)
        #expect(rejection(try token("RS256", kid: "other"), unusable) == .unknownKey)
    }
}
