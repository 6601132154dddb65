import Foundation
import GatewaySigning
import Testing
import WidgetModel

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
