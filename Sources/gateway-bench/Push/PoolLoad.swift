import CurlMulti
import Foundation
import GatewayCore
import GatewayDelivery
import GatewayTLS
import Synchronization
import WidgetModel

/// The gateway's pool of push connections, in this process.
struct PoolLoad {
    /// Pushes in flight.
    private static let window = 100
    private static let app = "com.mygame"

    let server: PushServer

    /// The cost of a number of pushes.
    struct Stats {
        var seconds = 0.0
        var cpuSeconds = 0.0
        var refused = 0
    }

    /// Makes as many pushes by one pool, after some that are not measured.
    func run(_ count: Int, tokens: [String]) throws -> Stats {
        var configuration = APNsPool.Configuration(
            .production,
            .key(.init(server.key, id: PushServer.keyID, team: PushServer.team)))
        configuration.origin = "https://127.0.0.1:\(server.port)"
        configuration.trust = .file(server.certificates.ca)
        let form = try APNsPushForm(.widgets, app: Self.app)
        let run = Run(pool: APNsPool(configuration), form: form, tokens: tokens)
        let done = DispatchSemaphore(value: 0)
        // The main thread has nothing else to do than to wait for it.
        Task {
            await run.measure(count)
            done.signal()
        }
        done.wait()
        return run.figures.withLock { $0 }
    }

    private final class Run: Sendable {
        let figures = Mutex(Stats())
        private let pool: APNsPool
        private let form: APNsPushForm
        private let tokens: [String]

        init(pool: APNsPool, form: APNsPushForm, tokens: [String]) {
            (self.pool, self.form, self.tokens) = (pool, form, tokens)
        }

        func measure(_ count: Int) async {
            _ = await push(PoolLoad.window)
            let (began, cpu) = (monotonicNanoseconds(), ProcessStats.ownCPUNanoseconds())
            let refused = await push(count)
            let measured = Stats(
                seconds: Double(monotonicNanoseconds() - began) / 1e9,
                cpuSeconds: Double(ProcessStats.ownCPUNanoseconds() - cpu) / 1e9,
                refused: refused)
            figures.withLock { $0 = measured }
            await pool.drain()
        }

        /// Returns the number of pushes that were refused.
        private func push(_ count: Int) async -> Int {
            await withCheckedContinuation { continuation in
                let pushes = Pushes(
                    pool: pool, form: form, tokens: tokens, count: count, continuation)
                for _ in 0..<min(PoolLoad.window, count) { pushes.next() }
            }
        }
    }

    /// A number of pushes, each begun when another has ended, as the gateway pushes.
    private final class Pushes: Sendable {
        private let pool: APNsPool
        private let form: APNsPushForm
        private let tokens: [String]
        private let count: Int
        private let continuation: CheckedContinuation<Int, Never>
        private let begun = Atomic(0)
        private let ended = Atomic(0)
        private let refused = Atomic(0)

        init(
            pool: APNsPool, form: APNsPushForm, tokens: [String], count: Int,
            _ continuation: CheckedContinuation<Int, Never>
        ) {
            (self.pool, self.form, self.tokens, self.count) = (pool, form, tokens, count)
            self.continuation = continuation
        }

        /// Begins another push, if there is one.
        func next() {
            let place = begun.wrappingAdd(1, ordering: .relaxed).oldValue
            guard place < count else { return }
            let token = tokens[place % tokens.count]
            guard let push = APNsPush(token: token, form: form, registeredAt: 0) else {
                return end(isAccepted: false)
            }
            pool.push(push) { self.end(isAccepted: $0.reaction.verdict == .delivered) }
        }

        private func end(isAccepted: Bool) {
            if !isAccepted { refused.add(1, ordering: .relaxed) }
            next()
            if ended.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue == count {
                continuation.resume(returning: refused.load(ordering: .relaxed))
            }
        }
    }
}
