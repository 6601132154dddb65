import APNsSimulator
import Foundation
import GatewayCore
import GatewayStorage
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// All of the push code, from the log to TLS, under all kinds of faults.
@Suite(.timeLimit(.minutes(30))) struct PushStormTests {
    /// The number of requests to APNs: as many as CI has time for in a debug build. Set
    /// `TIMELINE_STORM_PUSHES` for more, up to 100,000.
    private static let requests: UInt64 =
        ProcessInfo.processInfo.environment["TIMELINE_STORM_PUSHES"].flatMap(UInt64.init) ?? 10_000
    private static let seed =
        ProcessInfo.processInfo.environment["TIMELINE_STORM_SEED"].flatMap(UInt64.init) ?? 1

    /// Returns the last persisted attempt for each of some clients.
    private static func attempts(
        at clients: some Sequence<ClientKey>, _ store: SQLiteStore
    ) async throws -> [ClientKey: PushAttemptRow] {
        var attempts: [ClientKey: PushAttemptRow] = [:]
        for client in clients {
            var query = PushAttemptQuery(app: client.app)
            query.client = client.client
            attempts[client] = try await store.pushAttempts(query, limit: 1).first
        }
        return attempts
    }

    @Test func `with 5 % of every fault each device is told, withheld or dead`() async throws {
        var storm = try Storm(devices: max(300, Int(Self.requests) / 10), seed: Self.seed)
        let world = storm.world
        try await storm.start()
        while world.requests.value < Self.requests {
            try await storm.round()
            try await world.pass(storm.minutes(2...40))
        }
        // Three changes in a row exceed what is left of the budgets.
        for _ in 0..<3 {
            try await storm.post([], urgency: .normal)
            try await world.pass(storm.minutes(6...6))
        }
        let (midway, statusCounts) = try await storm.standings()
        let midwayAt = world.clock.now
        // Everything due is pushed, including repeats after hours.
        try await world.pass(30 * 86_400_000, while: { try await !storm.isOver() })
        let end = try await storm.standings().clients
        let over = try await storm.isOver()
        #expect(over)
        try await world.stop()
        let untold = storm.devices.map(\.key).filter { end[$0] != .told }
        let attempts = try await Self.attempts(at: untold, world.store)
        // Attempts are numbered from 1 across all apps.
        var lastAttempt: Int64 = 0
        for app in storm.apps {
            let last = try await world.store.pushAttempts(PushAttemptQuery(app: app), limit: 1)
            lastAttempt = max(lastAttempt, last.first?.number ?? 0)
        }
        try await world.close()

        var judge = StormJudge(storm)
        judge.judgePushes()
        judge.judgeProviderTokens()
        let counts = judge.judgeDevices(end, attempts)
        #expect(judge.faults.isEmpty, "\(judge.faults)")
        #expect(counts.values.reduce(0, +) == storm.devices.count, "\(counts)")
        // A withheld push was due once its budget had refilled: one push in 36 minutes, with some
        // of them reserved for urgent changes.
        let dues = midway.values.compactMap { standing -> Int64? in
            if case .withheld(let until) = standing, until < .max { until } else { nil }
        }
        #expect(!dues.isEmpty && dues.allSatisfy { $0 > midwayAt && $0 <= midwayAt + 10_800_000 })
        let sum =
            statusCounts.confirmed + statusCounts.told + statusCounts.underWay
            + statusCounts.withheld + statusCounts.waiting
            + statusCounts.refused + statusCounts.unreachable
        #expect(sum == midway.count, "\(statusCounts)")
        // An attempt is persisted for every push.
        let made = judge.pushes.values.reduce(0) { $0 + $1.count }
        #expect(lastAttempt == Int64(made))
        // APNs found no violation, and accepted no push twice.
        var violations = judge.record.violations.merging(
            judge.sandbox.violations, uniquingKeysWith: +)
        #expect(violations.removeValue(forKey: .pushedToDead) ?? 0 <= judge.excusedPushes)
        #expect(violations.isEmpty, "\(violations)")
        #expect(judge.record.duplicates + judge.sandbox.duplicates == 0)
        // Devices registered for the wrong environment are notified in their own.
        #expect(storm.devices.contains { $0.isStray && end[$0.key] == .told })
    }
}
