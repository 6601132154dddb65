import APNsSimulator
import Foundation
import GatewayCore
import GatewaySigning
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayDelivery

/// Many pushes at once, over TLS.
@Suite(.timeLimit(.minutes(30))) struct APNsPoolCrowdTests {
    private static func token(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    /// Pushes to these devices at once.
    private static func sendAll(
        _ fixture: APNsFixture, _ devices: Range<Int>
    ) async throws -> [APNsPushResult] {
        try await withThrowingTaskGroup(of: APNsPushResult.self) { group in
            for number in devices {
                group.addTask { try await fixture.send(to: token(number)) }
            }
            var results: [APNsPushResult] = []
            for try await result in group { results.append(result) }
            return results
        }
    }

    @Test func `the first goes alone and the others follow by the same connection`() async throws {
        let fixture = try APNsFixture()
        fixture.server.script(Self.token(0), [.slow(100, .taken)])
        let results = try await Self.sendAll(fixture, 0..<400)
        #expect(results.allSatisfy { $0.reaction == APNsReaction(.delivered) && $0.requests == 1 })
        await fixture.stop()
        let record = fixture.server.record
        #expect(record.violations.isEmpty && record.taken == 400 && record.duplicates == 0)
        #expect(record.connections.count == 1 && record.providerTokens.count == 1)
    }

    @Test func `a connection carries no more than its window, and another one the rest`()
        async throws
    {
        // A connection may be opened each second.
        let fixture = try APNsFixture(
            terms: { $0.faults = [.init(.slow(100, .taken), share: 1_000_000)] },
            pool: {
                $0.windowMax = 8
                $0.connectionsMax = 3
            })
        let results = try await Self.sendAll(fixture, 0..<600)
        #expect(results.allSatisfy { $0.reaction == APNsReaction(.delivered) })
        await fixture.stop()
        let record = fixture.server.record
        #expect(record.violations.isEmpty && record.mostStreams == 8)
        #expect(record.connections.count == 3)
    }

    @Test func `what the peer allows counts, if it is less`() async throws {
        let fixture = try APNsFixture(terms: {
            $0.streamsMax = 5
            $0.faults = [.init(.slow(5, .taken), share: 1_000_000)]
        })
        let results = try await Self.sendAll(fixture, 0..<100)
        #expect(results.allSatisfy { $0.reaction == APNsReaction(.delivered) })
        await fixture.stop()
        #expect(fixture.server.record.violations.isEmpty)
        #expect(fixture.server.record.mostStreams <= 5)
    }

    @Test func `a certificate needs no token`() async throws {
        let fixture = try APNsFixture(certificate: true)
        let results = try await Self.sendAll(fixture, 0..<100)
        #expect(results.allSatisfy { $0.reaction == APNsReaction(.delivered) })
        let other = try await fixture.send(app: "com.other")
        #expect(other.reaction == APNsReaction(.stop(.topic), alert: .topicRefused))
        await fixture.stop()
        let record = fixture.server.record
        #expect(record.providerTokens.isEmpty && record.connections.count == 1)
        #expect(record.violations == [.badRequest(.topicDisallowed): 1])
    }

    @Test func `a provider token is used for 55 minutes`() async throws {
        let fixture = try APNsFixture()
        for _ in 0..<12 {
            #expect(try await fixture.send().reaction == APNsReaction(.delivered))
            fixture.clock.advance(minutes: 10)
        }
        await fixture.stop()
        let record = fixture.server.record
        #expect(record.providerTokens.count == 2 && record.connections.count == 1)
        #expect(record.answers == [.taken: 12])
    }

    /// Keeps the token that all nodes share, instead of a store.
    private final class Shelf: Sendable {
        let held = Mutex<SharedProviderToken?>(nil)
        let reads = Atomic(0)

        var share: ProviderTokenShare {
            ProviderTokenShare(
                read: {
                    self.reads.add(1, ordering: .relaxed)
                    await Task.yield()
                    return self.held.withLock { $0 }
                },
                replace: { old, new in
                    await Task.yield()
                    return self.held.withLock { held in
                        if held == old { held = new }
                        return held ?? new
                    }
                })
        }
    }

    @Test func `all nodes use the same provider token`() async throws {
        let fixture = try APNsFixture()
        let shelf = Shelf()
        let pools = (0..<4).map { _ in
            var configuration = fixture.configuration
            configuration.credential = .key(
                .init(fixture.key, id: "KEY1234567", team: "TEAM123456", share: shelf.share))
            return APNsPool(configuration)
        }
        for _ in 0..<3 {
            let results = try await withThrowingTaskGroup(of: APNsPushResult.self) { group in
                for number in 0..<80 {
                    let push = try fixture.push(to: Self.token(number))
                    group.addTask { await pools[number % pools.count].push(push) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(results.allSatisfy { $0.reaction == APNsReaction(.delivered) })
            fixture.clock.advance(minutes: 30)
        }
        #expect(shelf.reads.load(ordering: .relaxed) == 8)
        for pool in pools { await pool.drain() }
        await fixture.stop()
        #expect(fixture.server.record.providerTokens.count == 2)
        #expect(fixture.server.record.violations.isEmpty)
    }

    @Test func `a token that was refused as expired is not taken from the others again`()
        async throws
    {
        let shelf = Shelf()
        let fixture = try APNsFixture(pool: { configuration in
            guard case .key(let key) = configuration.credential else { return }
            configuration.credential = .key(
                .init(key.key, id: key.id, team: key.team, share: shelf.share))
        })
        #expect(try await fixture.send().reaction == APNsReaction(.delivered))
        fixture.clock.advance(minutes: 25)
        fixture.server.script(APNsFixture.token, [.refused(.expiredProviderToken), .take])
        let result = try await fixture.send()
        #expect(result.reaction == APNsReaction(.delivered) && result.requests == 2)
        await fixture.stop()
        #expect(fixture.server.record.providerTokens.count == 2)
    }

    @Test func `draining gives up what waits and lets end what is under way`() async throws {
        let fixture = try APNsFixture()
        fixture.server.script(Self.token(0), [.slow(3_000, .taken)])
        async let first = fixture.send(to: Self.token(0))
        try await eventually("the first push is sent") { fixture.server.record.requests > 0 }
        async let second = fixture.send(to: Self.token(1))
        try await eventually("the second push waits") { fixture.pool.figures.waiting > 0 }
        await fixture.pool.drain()
        #expect(try await first.reaction == APNsReaction(.delivered))
        #expect(try await second.reaction == APNsReaction(.retry(.connection)))
        #expect(try await fixture.send().reaction == APNsReaction(.retry(.connection)))
        #expect(fixture.pool.figures.underWay == 0 && fixture.server.record.requests == 1)
        await fixture.server.stop()
    }

    @Test func `nothing that is printed shows a device token or a provider token`() async throws {
        let fixture = try APNsFixture()
        let push = try fixture.push()
        let result = await fixture.pool.push(push)
        guard case .key(let key) = fixture.configuration.credential,
            let token = key.mint(fixture.clock.ofPool)
        else { return }
        var printed = "\(push) \(result) \(token) \(fixture.configuration)"
        dump(push, to: &printed)
        dump(result, to: &printed)
        dump(token, to: &printed)
        #expect(!printed.contains(APNsFixture.token) && !printed.contains(token.text))
        await fixture.stop()
    }
}
