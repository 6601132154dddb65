import NIOCore
import NIOPosix
import Testing

@testable import GatewayTLS

/// Used by the loop only.
private final class Told: DeadlineOwner, @unchecked Sendable {
    // Sound: touched on one event loop only.
    private let name: Int
    private let log: Log
    private var again: Int

    final class Log: @unchecked Sendable {
        // Sound: as above.
        private(set) var names: [Int] = []
        private var waiting: (count: Int, promise: EventLoopPromise<Void>)?

        func append(_ name: Int) {
            names.append(name)
            if let waiting, names.count >= waiting.count { waiting.promise.succeed() }
        }

        func whenFull(_ count: Int, _ loop: any EventLoop) -> EventLoopFuture<Void> {
            let promise = loop.makePromise(of: Void.self)
            if names.count >= count { promise.succeed() } else { waiting = (count, promise) }
            return promise.futureResult
        }
    }

    init(_ name: Int, _ log: Log, again: Int = 0) {
        (self.name, self.log, self.again) = (name, log, again)
    }

    func deadlinePassed() {
        log.append(name)
        guard again > 0, let loop = MultiThreadedEventLoopGroup.currentEventLoop else { return }
        again -= 1
        _ = DeadlineQueue.set(.milliseconds(1), loop, for: self)
    }
}

@Suite(.timeLimit(.minutes(1))) struct DeadlineQueueTests {
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private func onLoop<Result: Sendable>(
        _ body: @escaping @Sendable (any EventLoop) -> Result
    ) async throws -> Result {
        let loop = group.any()
        return try await loop.submit { body(loop) }.get()
    }

    private func wait(_ log: Told.Log, for count: Int) async throws {
        let loop = group.any()
        try await loop.flatSubmit { log.whenFull(count, loop) }.get()
    }

    @Test func whatIsNotCancelledIsToldInOrder() async throws {
        let log = Told.Log()
        try await onLoop { loop in
            var kept: [DeadlineQueue.Deadline] = []
            for number in 0..<1_000 {
                let owner = Told(number, log)
                kept.append(DeadlineQueue.set(.milliseconds(20), loop, for: owner))
            }
            for number in 0..<1_000 where number % 3 != 0 { kept[number].cancel() }
        }
        try await wait(log, for: 334)
        #expect(
            try await onLoop { _ in log.names } == (0..<1_000).filter { $0 % 3 == 0 })
        try await group.shutdownGracefully()
    }

    /// A deadline that has passed or was cancelled has no power over the next one of its place.
    @Test func oldDeadlinesCancelNothing() async throws {
        let log = Told.Log()
        let first = try await onLoop { loop in
            let first = DeadlineQueue.set(.milliseconds(1), loop, for: Told(1, log))
            first.cancel()
            let second = DeadlineQueue.set(.milliseconds(1), loop, for: Told(2, log))
            first.cancel()
            return NIOLoopBound(second, eventLoop: loop)
        }
        try await wait(log, for: 1)
        try await onLoop { loop in
            _ = DeadlineQueue.set(.milliseconds(1), loop, for: Told(3, log))
            first.value.cancel()
        }
        try await wait(log, for: 2)
        #expect(try await onLoop { _ in log.names } == [2, 3])
        try await group.shutdownGracefully()
    }

    @Test func ownersMaySetAnother() async throws {
        let log = Told.Log()
        try await onLoop { loop in
            _ = DeadlineQueue.set(.milliseconds(1), loop, for: Told(7, log, again: 4))
            _ = DeadlineQueue.set(.milliseconds(2), loop, for: Told(8, log))
        }
        try await wait(log, for: 6)
        #expect(try await onLoop { _ in log.names.filter { $0 == 7 }.count } == 5)
        #expect(try await onLoop { _ in log.names.filter { $0 == 8 }.count } == 1)
        try await group.shutdownGracefully()
    }

    /// One that waits keeps its owner, one that is cancelled does not.
    @Test func cancelledDeadlinesKeepNobody() async throws {
        let log = Told.Log()
        let isGone = try await onLoop { loop in
            weak var owner: Told?
            let deadline = {
                let told = Told(1, log)
                owner = told
                return DeadlineQueue.set(.hours(1), loop, for: told)
            }()
            let isKept = owner != nil
            deadline.cancel()
            return isKept && owner == nil
        }
        #expect(isGone)
        try await group.shutdownGracefully()
    }
}
