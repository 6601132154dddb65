import APNsSimulator
import Foundation
import GatewayCore
import GatewayPush
import Testing

@testable import GatewayDelivery

/// A pool with a push service where nearly everything fails.
@Suite(.timeLimit(.minutes(30))) struct APNsPoolFaultTests {
    /// The number of devices. Every third request ends its connection, and connections are opened
    /// at a limited pace, so that more devices take long; set `TIMELINE_FAULTY_PUSHES` for more.
    private static let devices =
        ProcessInfo.processInfo.environment["TIMELINE_FAULTY_PUSHES"].flatMap(Int.init)
        ?? 500

    private static func token(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    /// The final state of a device.
    private enum End: Hashable {
        case delivered
        case dead
        case givenUp
    }

    /// Pushes until the push is delivered or the device is dead, as every user of a pool has to.
    private static func deliver(_ fixture: APNsFixture, _ number: Int) async throws -> End? {
        var push = try fixture.push(to: token(number))
        while true {
            switch await fixture.pool.push(push).reaction.verdict {
            case .delivered: return .delivered
            case .dropAddress, .quarantineAddress: return .dead
            case .giveUp: return .givenUp
            case .retry: break
            case .tryOtherEnvironment, .stop: return nil
            }
            push.failures += 1
            try await Task.sleep(for: .milliseconds(min(50, 2 * push.failures)))
        }
    }

    @Test func `with 5 % of every fault each device is pushed to or dead`() async throws {
        let behaviours: [PushBehaviour] =
            [
                .slow(20, .taken), .resetStream(isTaken: false), .refuseStream,
                .resetConnection(isTaken: false), .silence(isTaken: false),
                .goAway(reason: "Shutdown", includesThis: false),
            ]
            + [
                APNsReason.badDeviceToken, .deviceTokenNotForTopic, .expiredToken, .unregistered,
                .payloadTooLarge, .tooManyRequests, .internalServerError, .serviceUnavailable,
            ].map { .refused($0, timestamp: $0.status == 410 ? .max : nil) }
        let clock = FastClock(scale: 50)
        let fixture = try APNsFixture(
            clock: clock,
            terms: { $0.faults = behaviours.map { PushFault($0, share: 50_000) } },
            pool: {
                $0.windowMax = 50
                $0.deadline = .seconds(10)
            })
        let start = clock.now
        let count = Self.devices
        let ends = try await withThrowingTaskGroup(of: (Int, End?).self) { group in
            var next = 0
            var ends = [End?](repeating: nil, count: count)
            func add() {
                guard next < count else { return }
                let number = next
                next += 1
                group.addTask { (number, try await Self.deliver(fixture, number)) }
            }
            for _ in 0..<1_500 { add() }
            for try await (number, end) in group {
                ends[number] = end
                add()
            }
            return ends
        }
        let minutes = (clock.now - start) / 60_000
        await fixture.stop()
        let record = fixture.server.record
        // The results match the record of each device.
        for (number, end) in ends.enumerated() {
            let device = try #require(record.devices[Self.token(number)])
            switch end {
            case .delivered: #expect(device.taken > 0 && !device.isDead)
            case .dead: #expect(device.isDead)
            case .givenUp: #expect(device.last == .refused(.payloadTooLarge))
            case nil: Issue.record("device \(number) came to no end")
            }
        }
        let counts = Dictionary(grouping: ends) { $0 }.mapValues(\.count)
        #expect(counts[.delivered, default: 0] > count / 3, "\(counts)")
        #expect(counts[.dead, default: 0] > count / 10, "\(counts)")
        // No push was repeated that must not be, and no connection was used against the rules.
        #expect(record.violations.isEmpty, "\(record.violations)")
        // Provider tokens came at most every 20 minutes, and most were used for an hour.
        #expect(record.providerTokens.count <= Int(minutes / 50) + 1, "\(minutes) minutes")
        #expect(
            record.answers.keys.allSatisfy {
                $0.status != 403 && $0.reason?.hasPrefix("TooManyP") != true
            },
            "\(record.answers)")
    }
}
