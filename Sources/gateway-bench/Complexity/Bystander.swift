import Foundation
import Synchronization

/// A backend of an app of its own that posts one change every 50 ms, on a thread and a connection of
/// its own: the CPU time of the attackers' side is not the gateway's.
final class Bystander: Sendable {
    /// Between two posts that are due, in nanoseconds.
    static let period: Int64 = 50_000_000
    private static let timeoutSeconds = 20.0
    /// Longer than any run.
    private static let lifetimeSeconds = 86_400.0

    private struct Post {
        let start: Int64
        /// The CPU time of the gateway at its start and at its answer.
        let cpuBefore: Int64
        var cpuAfter: Int64?
        var isAccepted = false
    }

    private struct State {
        var posts: [Post] = []
        var isStopping = false
        var hasEnded = false
        var failure: String?
    }

    private let state = Mutex(State())
    /// The CPU time that the gateway has used, in nanoseconds.
    private let cpu: @Sendable () -> Int64

    /// Starts to post; returns when the connection is open and a first post was answered. `ca` is a
    /// file of trusted certificates; `cpu` returns the CPU time of the gateway in nanoseconds, and
    /// `request` the request with a number.
    init(
        ca: String, port: UInt16, cpu: @escaping @Sendable () -> Int64,
        request: @escaping @Sendable (Int) -> [UInt8]
    ) throws {
        self.cpu = cpu
        let thread = Thread { [self] in
            do {
                try post(ca: ca, port: port, request)
            } catch {
                state.withLock { $0.failure = $0.failure ?? "\(error)" }
            }
            state.withLock { $0.hasEnded = true }
        }
        thread.stackSize = 1 << 20
        thread.start()
        try waitUntil(seconds: Self.timeoutSeconds) { $0.posts.contains { $0.isAccepted } }
        if let failure = state.withLock({ $0.failure }) {
            throw BenchFailure("the bystander cannot post: \(failure)")
        }
    }

    /// Stops posting; returns when its thread has nothing more to do.
    func stop() {
        state.withLock { $0.isStopping = true }
        try? waitUntil(seconds: Self.timeoutSeconds) { $0.hasEnded }
    }

    /// The failure of its connection; `nil` while it holds.
    var failure: String? { state.withLock { $0.failure } }

    /// Returns the posts sent from `start`, in monotonic nanoseconds, until now, once those in
    /// flight are answered. A post without an answer by then failed.
    func figures(since start: Int64) throws -> BystanderStats {
        let end = monotonicNanoseconds()
        try waitUntil(seconds: Self.timeoutSeconds) { state in
            !state.posts.contains { $0.start < end && $0.cpuAfter == nil }
        }
        let now = cpu()
        let posts = state.withLock { $0.posts }.filter { (start..<end).contains($0.start) }
        return BystanderStats(
            milliseconds: posts.map { Double(($0.cpuAfter ?? now) - $0.cpuBefore) / 1e6 },
            failed: posts.count { !$0.isAccepted })
    }

    /// Waits until it is so, the bystander has ended, or the time is over.
    private func waitUntil(seconds: Double, _ isSo: (State) -> Bool) throws {
        let end = monotonicNanoseconds() + Int64(seconds * 1e9)
        while monotonicNanoseconds() < end, !state.withLock({ $0.hasEnded || isSo($0) }) {
            try Interruption.check()
            usleep(2_000)
        }
    }

    private func post(
        ca: String, port: UInt16, _ request: @Sendable (Int) -> [UInt8]
    ) throws {
        let generator = try Generator(ca: ca)
        let poster = Poster { isAccepted in
            let cpu = self.cpu()
            self.state.withLock { state in
                state.posts[state.posts.count - 1].cpuAfter = cpu
                state.posts[state.posts.count - 1].isAccepted = isAccepted
            }
        }
        let connection = try generator.connect(.init(port: port), user: poster)
        var due: Int64 = 0
        var number = 0
        try generator.run(
            seconds: Self.lifetimeSeconds,
            timer: {
                guard poster.isReady else { return nil }
                let now = monotonicNanoseconds()
                guard now >= due else { return due }
                let cpu = self.cpu()
                self.state.withLock { $0.posts.append(Post(start: now, cpuBefore: cpu)) }
                poster.isReady = false
                generator.send(request(number), on: connection)
                number += 1
                due = now + Self.period
                return nil
            },
            until: {
                poster.failure != nil
                    || (poster.isReady && self.state.withLock { $0.isStopping })
            })
        if let failure = poster.failure { throw BenchFailure(failure) }
        generator.close(connection)
    }

    /// Receives the answers.
    private final class Poster: ConnectionUser {
        var isReady = false
        var failure: String?
        private let answered: (_ isAccepted: Bool) -> Void

        init(_ answered: @escaping (_ isAccepted: Bool) -> Void) { self.answered = answered }

        func opened(_ connection: ClientConnection) { isReady = true }

        func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
            answered(status == 202)
            isReady = true
        }

        func closed(_ connection: ClientConnection, reason: String) {
            failure = "its connection ended: \(reason)"
        }
    }
}
