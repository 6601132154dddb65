import CurlMulti
import Foundation
import GatewayCore
import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayDelivery

/// Connections to peers that do what the simulated APNs does not: unusual frames and orders, no
/// HTTP/2, no trust.
@Suite(.timeLimit(.minutes(30))) struct APNsConnectionTests {
    private typealias Outcome = APNsOutcome

    private static func pool(
        _ server: ScriptedServer, _ change: (inout APNsPool.Configuration) -> Void = { _ in }
    ) throws -> APNsPool {
        var configuration = APNsPool.Configuration(
            .production,
            .key(.init(try SigningKey(generating: .es256), id: "KEY1234567", team: "TEAM123456")))
        configuration.origin = server.origin
        configuration.trust = .file(server.certificate)
        (configuration.deadline, configuration.connectDeadline) = (
            Patience.duration, Patience.duration
        )
        change(&configuration)
        return APNsPool(configuration)
    }

    private static func push(_ token: String = "00ff") throws -> APNsPush {
        let form = try APNsPushForm(.widgets, app: "com.mygame")
        return try #require(APNsPush(token: token, form: form, registeredAt: 0))
    }

    /// Returns the results of pushes that are sent one after another.
    private static func outcomes(
        _ script: [ScriptedServer.Action], count: Int = 1,
        _ change: (inout APNsPool.Configuration) -> Void = { _ in }
    ) async throws -> [APNsPushResult] {
        let server = try ScriptedServer(script)
        defer { withExtendedLifetime(server) {} }
        let pool = try pool(server, change)
        var results: [APNsPushResult] = []
        for _ in 0..<count { results.append(await pool.push(try push())) }
        await pool.drain()
        #expect(pool.figures.underWay == 0 && pool.figures.waiting == 0)
        return results
    }

    @Test(
        arguments: [
            (.ok, .answered(status: 200)),
            (.big, .answered(status: 200)),
            (.interim, .answered(status: 200)),
            (.redirect, .answered(status: 302)),
            (.reason, .answered(status: 400, reason: "BadDeviceToken")),
            (.busy, .answered(status: 429)),
            // A status counts, whatever follows it.
            (.statusThenReset, .answered(status: 410)),
            (.goAway, .answered(status: 200)),
            (.reset, .failed(.streamReset)),
            (.resetAndGoAway, .failed(.streamReset)),
            (.goAwayAndReset, .failed(.streamReset)),
            (.close, .failed(.connectionEnded)),
            (.goAwayAndClose, .failed(.connectionEnded)),
            (.garbage, .failed(.connectionEnded)),
        ] as [(ScriptedServer.Action, APNsOutcome)])
    func `what a peer does is what is reported`(
        action: ScriptedServer.Action, outcome: APNsOutcome
    ) async throws {
        let result = try #require(try await Self.outcomes([action]).first)
        #expect(result.outcome == outcome && result.requests == 1)
    }

    @Test func `what was refused or left out goes by another connection`() async throws {
        for action in [ScriptedServer.Action.refuse, .goAwayBefore] {
            let results = try await Self.outcomes([.ok, action, .ok], count: 2)
            #expect(results.map(\.outcome) == [.answered(status: 200), .answered(status: 200)])
            #expect(results.map(\.requests) == [1, 2], "\(action)")
        }
    }

    @Test func `a peer that takes nothing any more is left`() async throws {
        let server = try ScriptedServer([.narrow, .ok])
        let clock = FastClock(scale: 100)
        let pool = try Self.pool(server) { $0.clock = clock.ofPool }
        for _ in 0..<2 {
            #expect(await pool.push(try Self.push()).outcome == .answered(status: 200))
        }
        #expect(
            try server.seen().filter { $0.hasPrefix("request") } == [
                "request 1 narrow", "request 2 ok",
            ])
        await pool.drain()
    }

    @Test func `one who is not trusted is told nothing`() async throws {
        let server = try ScriptedServer([.ok])
        for file in [nil, server.otherCertificate, "/nowhere"] {
            let pool = try Self.pool(server) { $0.trust = CurlTrust(file: file) }
            #expect(await pool.push(try Self.push()).outcome == .failed(.notConnected))
            await pool.drain()
        }
        #expect(try server.seen().filter { $0 != "accepted 127.0.0.1" } == [])
    }

    @Test func `without the certificate that it wants a peer takes nothing`() async throws {
        let server = try ScriptedServer([.ok], wantsCertificate: true)
        let pool = try Self.pool(server)
        let outcome = await pool.push(try Self.push()).outcome
        // Which of the two depends on whether the refusal arrives before the first write.
        #expect(outcome == .failed(.connectionEnded) || outcome == .failed(.notConnected))
        #expect(try server.seen() == ["accepted 127.0.0.1"])
        await pool.drain()
    }

    @Test func `a peer that asks for a certificate is shown one`() async throws {
        let server = try ScriptedServer([.ok], wantsCertificate: true)
        func bytes(_ name: String) throws -> [UInt8] {
            Array(try Data(contentsOf: URL(filePath: server.directory + "/" + name)))
        }
        let (certificate, key) = (try bytes("ca.pem"), try bytes("ca.key"))
        let pool = try Self.pool(server) { $0.credential = .certificate(certificate, key: key) }
        #expect(await pool.push(try Self.push()).outcome == .answered(status: 200))
        await pool.drain()
    }

    @Test(arguments: [nil, "http/1.1"])
    func `one who does not speak HTTP2 is told nothing`(name: String?) async throws {
        let server = try ScriptedServer([.ok], speaks: name)
        let pool = try Self.pool(server)
        #expect(await pool.push(try Self.push()).outcome == .failed(.notConnected))
        #expect(try server.seen() == ["accepted 127.0.0.1"])
        await pool.drain()
    }

    @Test func `an idle peer is asked whether it is there, and left when it is not`() async throws {
        // Again where this machine was too slow for an answer.
        try await eventually("the idle peer stays and the deaf one is left") {
            let server = try ScriptedServer([.ok, .deaf, .ok])
            let pool = try Self.pool(server) {
                $0.idleBeforePing = .milliseconds(200)
                $0.deadline = .milliseconds(600)
            }
            var outcomes = [await pool.push(try Self.push()).outcome]
            // The peer answers, so the connection stays: a third PING is sent only to a peer that
            // answered the second.
            try await eventually("a third PING is sent, or the peer left") {
                try pool.figures.connections == 0
                    || server.seen().count(where: { $0 == "ping 1" }) >= 3
            }
            outcomes.append(await pool.push(try Self.push()).outcome)
            try await eventually("the deaf peer is left") { pool.figures.connections == 0 }
            outcomes.append(await pool.push(try Self.push()).outcome)
            await pool.drain()
            let seen = try server.seen()
            return outcomes.allSatisfy { $0 == .answered(status: 200) }
                && seen.count { $0 == "ping 1" } >= 3
                && seen.filter { $0.hasPrefix("request") } == [
                    "request 1 ok", "request 1 deaf", "request 2 ok",
                ]
        }
    }

    @Test func `a pool that is let go answers for all that it took`() async throws {
        let server = try ScriptedServer([.silence])
        var pool: APNsPool? = try Self.pool(server)
        let result = try await withThrowingTaskGroup(of: APNsOutcome?.self) { group in
            for _ in 0..<3 {
                let push = try Self.push()
                let (results, continuation) = AsyncStream.makeStream(of: APNsPushResult.self)
                pool?.push(push) {
                    continuation.yield($0)
                    continuation.finish()
                }
                group.addTask { await results.first { _ in true }?.outcome ?? nil }
            }
            try await eventually("sent") { try server.seen().contains("request 1 silence") }
            pool = nil
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(result == [nil, nil, nil])
    }
}

/// Compares the table of streams with a list.
@Suite struct APNsStreamsTests {
    @Test(arguments: 0..<50 as Range<UInt64>)
    func `streams are found by place and by age`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var streams = APNsStreams()
        var model: [(place: Int, flight: UInt64, id: Int32)] = []
        for step in 0..<500 as Range<UInt64> {
            if random.happens(55) {
                let place = streams.add(step, payload: [], deadline: Int64(step))
                #expect(!model.contains { $0.place == place })
                let id = Int32(2 * step + 1)
                streams[place]?.id = id
                model.append((place, step, id))
            } else if let index = model.indices.randomElement(using: &random) {
                let gone = model.remove(at: index)
                #expect(streams.remove(gone.place)?.flight == gone.flight)
                #expect(streams.remove(gone.place) == nil && streams[gone.place] == nil)
            }
            #expect(streams.count == model.count)
            #expect(streams.first?.stream.flight == model.first?.flight)
            if let one = model.randomElement(using: &random) {
                #expect(streams[one.place]?.flight == one.flight)
                #expect(streams.place(of: one.id) == one.place)
            }
        }
        for expected in model {
            #expect(streams.first?.place == expected.place)
            _ = streams.remove(expected.place)
        }
        #expect(streams.first == nil && streams[-1] == nil && streams[9_999] == nil)
    }

    @Test func `ids are UUIDs of version 4, each another`() throws {
        var random = SplitMix64(seed: 7)
        let ids = Set((0..<10_000).map { _ in random.uuid() })
        #expect(ids.count == 10_000)
        let form = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
        #expect(ids.allSatisfy { $0.wholeMatch(of: form) != nil })
        // Every digit occurs everywhere, except at the version and the variant.
        for place in 0..<36 where ![8, 13, 14, 18, 19, 23].contains(place) {
            #expect(Set(ids.map { Array($0)[place] }).count == 16, "\(place)")
        }
    }
}
