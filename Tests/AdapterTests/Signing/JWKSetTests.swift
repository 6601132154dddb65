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
        #expect { try JWKSet(parsing: bytes(text)) } throws: {
            ($0 as? SigningError)?.code == .documentMalformed
        }
    }

    @Test func theLimitsAreKept() throws {
        let many = #"{"keys":["# + Array(repeating: "{}", count: 101).joined(separator: ",") + "]}"
        let long = #"{"keys":[]}"# + String(repeating: " ", count: JWKSet.bytesMax)
        for text in [many, long] {
            #expect { try JWKSet(parsing: bytes(text)) } throws: {
                ($0 as? SigningError)?.code == .limitExceeded
            }
        }
    }
}
