import Foundation
import GatewaySigning
import Synchronization
import Testing
import WidgetModel

@testable import TimelineGatewayClient
@testable import TimelineRuntime

@Suite struct PublishedKeyVerifierTests {
    let gateway: ScriptedGateway

    init() throws { gateway = try ScriptedGateway() }

    func notification(_ change: (inout ReloadNotification) -> Void = { _ in }) throws -> String {
        var claims = claims([status])
        claims.expires = 1_000
        change(&claims)
        return try gateway.signed(claims)
    }

    /// Devices of one process verify at once when they are notified of the same change.
    @Test func aSignedNotificationIsBelievedAndKeysAreFetchedOnce() async throws {
        let verifier = PublishedKeyVerifier(connection: gateway, app: "com.mygame")
        let text = try notification()
        let believed = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<100 {
                group.addTask { (try? await verifier.verify(text, serverTime: 10)) != nil }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(believed == 100)
        #expect(try await verifier.verify(text, serverTime: 10).reload.map(\.kind) == [status.kind])
        #expect(gateway.read { $0.keyRequests } == 1)
    }

    @Test func everyClaimThatDoesNotHoldHasItsReason() async throws {
        let verifier = PublishedKeyVerifier(connection: gateway, app: "com.mygame")
        _ = try await verifier.verify(try notification(), serverTime: 10)
        var forged = Array(try notification().utf8)
        let place = forged.count - 10
        // The replacement is another letter of base64url, since any other would be malformed.
        forged[place] = forged[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let refused: [(String, Int64, VerificationFailure.Code)] = [
            (try notification { $0.audience = "com.other" }, 10, .wrongAudience),
            (try notification { $0.issuer = "https://elsewhere" }, 10, .wrongIssuer),
            (try notification(), 2_000, .expired), ("x", 10, .malformed),
            (String(decoding: forged, as: UTF8.self), 10, .badSignature),
        ]
        for (text, serverTime, reason) in refused {
            let failure = await #expect(throws: VerificationFailure.self) {
                try await verifier.verify(text, serverTime: serverTime)
            }
            #expect(failure?.code == reason)
        }
    }

    @Test func anUnknownKeyIsLookedForButNotTooOften() async throws {
        let now = Mutex(ContinuousClock.now)
        let verifier = PublishedKeyVerifier(
            connection: gateway, app: "com.mygame", issuer: nil, keys: OpenSSLKeys.self,
            clock: { now.withLock { $0 } })
        let stranger = try ScriptedGateway().signed(claims([status]))
        for _ in 0..<5 {
            await #expect(throws: VerificationFailure.unknownKey) {
                try await verifier.verify(stranger, serverTime: 0)
            }
        }
        #expect(gateway.read { $0.keyRequests } == 1)
        now.withLock { $0 += .seconds(11) }
        _ = try? await verifier.verify(stranger, serverTime: 0)
        #expect(gateway.read { $0.keyRequests } == 2)
    }

    /// Text that is not exactly the compact form is malformed, however it was altered.
    @Test func whatIsNotOfTheCompactFormIsMalformed() throws {
        let text = try notification()
        let parts = text.split(separator: ".")
        let header = { (json: String) in
            let encoded = Data(json.utf8).base64EncodedString().replacing("=", with: "")
            return "\(encoded).\(parts[1]).\(parts[2])"
        }
        let good = #""alg":"EdDSA","kid":"k","typ":"timeline-reload+jwt""#
        #expect(throws: Never.self) { try SignedNotification(header("{\(good)}")) }
        for spoilt in [
            "", ".", "..", "a.b", "\(text).x", "\(text)=", " \(text)",
            text.replacing(".", with: "\u{2024}"), header("[]"), header("{"), header("{}"),
            header("{\(good),\(good)}"), header(#"{\#(good),"crit":["b64"]}"#),
            header("{\(good.replacing("timeline-reload+jwt", with: "JWT"))}"),
            header(#"{"alg":"EdDSA","kid":"k"}"#),
            header(#"{"alg":1,"kid":"k","typ":"timeline-reload+jwt"}"#),
            header(
                #"{"alg":"EdDSA","kid":"\#(String(repeating: "k", count: 257))","#
                    + #""typ":"timeline-reload+jwt"}"#),
            String(repeating: "a", count: SignedNotification.bytesMax + 1),
        ] {
            #expect(throws: VerificationFailure.self) { try SignedNotification(spoilt) }
        }
    }

    /// A key is used with its own algorithm, whatever the header says.
    @Test func anotherAlgorithmThanTheKeysIsForged() throws {
        let key = try SigningKey()
        let keys = try #require(OpenSSLKeys(jwks: JWKSet([key.publicKey]).serialized))
        for algorithm in ["none", "HS256", "ES256", "eddsa"] {
            let header = JSONValue.object([
                "alg": .string(algorithm), "kid": .string(key.publicKey.kid),
                "typ": "timeline-reload+jwt",
            ])
            let input =
                Base64.url.string(header.serialized) + "." + Base64.url.string(Array("{}".utf8))
            let signature = try key.sign(Array(input.utf8))
            let signed = try SignedNotification("\(input).\(Base64.url.string(signature))")
            #expect(throws: VerificationFailure.badSignature, "\(algorithm)") {
                try keys.check(signed)
            }
        }
        #expect(OpenSSLKeys(jwks: Array("[]".utf8)) == nil)
    }
}
