import GatewaySigning
import Synchronization
import Testing
import TimelineClient
import WidgetModel

@testable import TimelineClientHTTP

@Suite struct PublishedKeyVerifierTests {
    let gateway: ScriptedGateway

    init() throws {
        gateway = try ScriptedGateway()
    }

    func notification(_ change: (inout ReloadNotification) -> Void = { _ in }) throws -> String {
        var claims = claims([status])
        claims.expires = 1_000
        change(&claims)
        return try gateway.signed(claims)
    }

    func code(_ body: () async throws -> Void) async -> VerificationFailure.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? VerificationFailure)?.code
        }
    }

    @Test func aSignedNotificationIsBelievedAndKeysAreFetchedOnce() async throws {
        let verifier = PublishedKeyVerifier(connection: gateway, app: "com.mygame")
        for _ in 0..<3 {
            let claims = try await verifier.verify(try notification(), serverTime: 10)
            #expect(claims.reload.map(\.kind) == [status.kind])
        }
        #expect(gateway.read { $0.keyRequests } == 1)
    }

    @Test func everyClaimThatDoesNotHoldHasItsReason() async throws {
        let verifier = PublishedKeyVerifier(connection: gateway, app: "com.mygame")
        _ = try await verifier.verify(try notification(), serverTime: 10)
        let other = try notification { $0.audience = "com.other" }
        #expect(
            await code { _ = try await verifier.verify(other, serverTime: 10) } == .wrongAudience)
        let foreign = try notification { $0.issuer = "https://elsewhere" }
        #expect(
            await code { _ = try await verifier.verify(foreign, serverTime: 10) } == .wrongIssuer)
        let late = try notification()
        #expect(await code { _ = try await verifier.verify(late, serverTime: 2_000) } == .expired)
        #expect(await code { _ = try await verifier.verify("x", serverTime: 10) } == .malformed)
        var forged = Array(try notification().utf8)
        forged[forged.count - 10] ^= 1
        let text = String(decoding: forged, as: UTF8.self)
        #expect(await code { _ = try await verifier.verify(text, serverTime: 10) } == .badSignature)
    }

    @Test func anUnknownKeyIsLookedForButNotTooOften() async throws {
        let now = Mutex(ContinuousClock.now)
        let verifier = PublishedKeyVerifier(
            connection: gateway, app: "com.mygame", issuer: nil, clock: { now.withLock { $0 } })
        let stranger = try ScriptedGateway().signed(claims([status]))
        for _ in 0..<5 {
            #expect(
                await code { _ = try await verifier.verify(stranger, serverTime: 0) }
                    == .unknownKey)
        }
        #expect(gateway.read { $0.keyRequests } == 1)
        now.withLock { $0 += .seconds(11) }
        _ = await code { _ = try await verifier.verify(stranger, serverTime: 0) }
        #expect(gateway.read { $0.keyRequests } == 2)
    }

    @Test func aTokenForTheGatewayIsNoNotification() async throws {
        let key = try SigningKey()
        let jws = try JWSSigner(key: key, type: "JWT").sign(payload: claims().json.serialized)
        let verifier = PublishedKeyVerifier(connection: gateway, app: "com.mygame")
        let text = String(decoding: jws, as: UTF8.self)
        #expect(await code { _ = try await verifier.verify(text, serverTime: 0) } == .malformed)
    }
}
