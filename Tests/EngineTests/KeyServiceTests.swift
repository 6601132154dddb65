import Foundation
import GatewaySigning
import GatewayTestSupport
import Testing

@testable import GatewayEngine
@testable import GatewayOperations

/// The webhook keys of a running gateway while they are changed.
@Suite struct KeyServiceTests {
    private let week: Int64 = 7 * 86_400

    private func service(_ data: String, hasWebhooks: Bool = true, now: Int64) throws -> KeyService
    {
        try KeyService(
            data: data, algorithm: .edDSA, timing: .init(signatureLifetime: 900),
            hasLocalIssuer: false, hasWebhooks: hasWebhooks, audience: "", now: now)
    }

    @Test func `both keys sign from the rotation on until the old one goes two weeks later`()
        throws
    {
        let data = try GatewayProcess.temporaryDirectory()
        let now = Int64(Date().timeIntervalSince1970)
        let service = try service(data, now: now)
        let old = try #require(service.webhookSigner?.publicKeys)
        #expect(old.count == 1)
        // As another process does: the command, while the gateway runs.
        let states = try DataDirectory(data).rotateSigningKey(.webhooks, to: "EdDSA")
        #expect(states.map(\.publicKey).first == old.first && states.count == 2)
        #expect(try service.advance(now: now + 5, hasWebhooks: true))
        let both = try #require(service.webhookSigner?.publicKeys)
        #expect(both.count == 2 && both.first == old.first)
        #expect(throws: SigningError.self) {
            try DataDirectory(data).rotateSigningKey(.webhooks, to: "EdDSA")
        }
        #expect(try !service.advance(now: now + week - 5, hasWebhooks: true))
        #expect(try service.advance(now: now + week + 5, hasWebhooks: true))
        #expect(service.webhookSigner?.publicKeys == both.reversed())
        #expect(try !service.advance(now: now + 2 * week, hasWebhooks: true))
        #expect(try service.advance(now: now + 2 * week + 400, hasWebhooks: true))
        #expect(service.webhookSigner?.publicKeys == [both[1]])
        let left = try DataDirectory(data).signingKeys(.webhooks)
        #expect(left.map(\.publicKey) == [both[1]])
        // The next change may begin.
        #expect(try DataDirectory(data).rotateSigningKey(.webhooks, to: "EdDSA").count == 2)
    }

    /// Rotates once on each of several threads, all at the same moment.
    ///
    /// - Returns: The number of rotations that succeeded.
    private func rotateAtOnce(_ data: String, _ purpose: KeyPurpose) async -> Int {
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (try? DataDirectory(data).rotateSigningKey(purpose, to: "EdDSA")) != nil
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
    }

    @Test func `rotations of webhook keys at one moment make one key`() async throws {
        for _ in 0..<5 {
            let data = try GatewayProcess.temporaryDirectory()
            _ = try service(data, now: Int64(Date().timeIntervalSince1970))
            #expect(await rotateAtOnce(data, .webhooks) == 1)
            #expect(try DataDirectory(data).signingKeys(.webhooks).count == 2)
        }
    }

    @Test func `rotations of notification keys at one moment make one key`() async throws {
        let data = try GatewayProcess.temporaryDirectory()
        _ = try service(data, now: Int64(Date().timeIntervalSince1970))
        #expect(await rotateAtOnce(data, .notifications) == 8)
        #expect(try DataDirectory(data).signingKeys(.notifications).count == 2)
        // Another algorithm is another request.
        _ = try DataDirectory(data).rotateSigningKey(.notifications, to: "ES256")
        #expect(try DataDirectory(data).signingKeys(.notifications).count == 3)
    }

    @Test func `a ring that was read earlier never replaces one that was read later`() async throws
    {
        for _ in 0..<40 {
            let data = try GatewayProcess.temporaryDirectory()
            let now = Int64(Date().timeIntervalSince1970)
            let service = try service(data, hasWebhooks: false, now: now)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    let states = try DataDirectory(data).rotateSigningKey(
                        .notifications, to: "EdDSA")
                    _ = try service.advance(now: now, hasWebhooks: false)
                    for _ in 0..<20 {
                        #expect(service.publishedKeys.keys.map(\.kid) == states.map(\.kid))
                        await Task.yield()
                    }
                }
                for _ in 0..<3 {
                    group.addTask { _ = try service.advance(now: now, hasWebhooks: false) }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func `the keys of notifications are others`() throws {
        let data = try GatewayProcess.temporaryDirectory()
        let now = Int64(Date().timeIntervalSince1970)
        let service = try service(data, now: now)
        _ = try DataDirectory(data).rotateSigningKey(.notifications, to: "ES256")
        #expect(try service.advance(now: now + 5, hasWebhooks: true))
        #expect(service.publishedKeys.keys.count == 2)
        #expect(service.webhookSigner?.publicKeys.count == 1)
        let states = try DataDirectory(data).signingKeys(.notifications)
        #expect(states.count == 2 && states.allSatisfy { $0.publicKey == nil })
    }

    @Test func `a gateway without webhooks has no keys for them, and gets none by asking`() throws {
        let data = try GatewayProcess.temporaryDirectory()
        let service = try service(data, hasWebhooks: false, now: 1)
        #expect(service.webhookSigner == nil)
        #expect(throws: (any Error).self) { try DataDirectory(data).signingKeys(.webhooks) }
        #expect(!FileManager.default.fileExists(atPath: data + "/webhooks"))
    }
}
