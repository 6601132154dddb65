import CLinux
import Foundation
import Glibc
import Testing

@testable import GatewayTLS

/// Waiting for descriptors, and waking the one who waits.
@Suite struct PollerTests {
    /// Two connected sockets: what `far` sends makes `near` readable.
    private final class Pair {
        let near: Int32
        let far: Int32

        init() throws {
            var sockets: [Int32] = [-1, -1]
            let result = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &sockets)
            try #require(result == 0)
            (near, far) = (sockets[0], sockets[1])
        }

        func send() { Glibc.send(far, "x", 1, 0) }

        deinit {
            Glibc.close(near)
            Glibc.close(far)
        }
    }

    private let poller: Poller
    private let pair: Pair

    init() throws {
        poller = try Poller(for: "tests")
        pair = try Pair()
    }

    private func wait(upTo milliseconds: Int32 = 0, room: Int = 8) throws -> [epoll_event] {
        var events = [epoll_event](repeating: epoll_event(), count: room)
        let ready = poller.wait(upTo: milliseconds, into: &events)
        return try Array(#require(ready))
    }

    private func tokens(upTo milliseconds: Int32 = 0, room: Int = 8) throws -> [UInt64] {
        try wait(upTo: milliseconds, room: room).map { $0.data.u64 }
    }

    @Test func readinessIsToldWithItsToken() throws {
        let token = UInt64(7) << 32 | 9
        #expect(poller.add(pair.near, for: EPOLLIN.rawValue, token: token))
        #expect(try tokens().isEmpty)
        pair.send()
        let event = try #require(try wait(upTo: 10_000).first)
        #expect(event.data.u64 == token)
        #expect(event.events == EPOLLIN.rawValue)
        #expect(try tokens() == [token], "what is not read is told again")
    }

    @Test func anEdgeIsToldOnce() throws {
        let interest = EPOLLIN.rawValue | EPOLLET.rawValue
        #expect(poller.add(pair.near, for: interest, token: 1))
        pair.send()
        #expect(try tokens(upTo: 10_000) == [1])
        #expect(try tokens().isEmpty)
        pair.send()
        #expect(try tokens(upTo: 10_000) == [1])
    }

    @Test func interestAndTokenCanBeReplaced() throws {
        #expect(poller.add(pair.near, for: EPOLLIN.rawValue, token: 1))
        pair.send()
        #expect(poller.modify(pair.near, for: EPOLLOUT.rawValue, token: 2))
        let event = try #require(try wait(upTo: 10_000).first)
        #expect(event.data.u64 == 2)
        #expect(event.events == EPOLLOUT.rawValue)
    }

    @Test func whatIsRemovedIsToldNoMore() throws {
        #expect(poller.add(pair.near, for: EPOLLIN.rawValue, token: 1))
        pair.send()
        #expect(try tokens(upTo: 10_000) == [1])
        poller.remove(pair.near)
        #expect(try tokens().isEmpty)
        #expect(poller.add(pair.near, for: EPOLLIN.rawValue, token: 2), "it may come back")
        #expect(try tokens(upTo: 10_000) == [2])
    }

    @Test func theKernelsRefusalIsReported() {
        #expect(!poller.modify(pair.near, for: EPOLLIN.rawValue, token: 1))
        #expect(poller.add(pair.near, for: EPOLLIN.rawValue, token: 1))
        #expect(!poller.add(pair.near, for: EPOLLIN.rawValue, token: 2))
        #expect(!poller.add(-1, for: EPOLLIN.rawValue, token: 3))
    }

    @Test func whatFindsNoRoomIsToldByTheNextWait() throws {
        let other = try Pair()
        #expect(poller.add(pair.near, for: EPOLLIN.rawValue, token: 1))
        #expect(poller.add(other.near, for: EPOLLIN.rawValue, token: 2))
        pair.send()
        other.send()
        let told = try tokens(upTo: 10_000, room: 1) + tokens(upTo: 10_000, room: 1)
        #expect(told.sorted() == [1, 2])
    }

    @Test func anotherThreadEndsAWait() throws {
        Thread.detachNewThread { [poller] in poller.wake() }
        #expect(try tokens(upTo: 60_000) == [Poller.wakeToken])
    }

    @Test func eachWakeUpIsToldOnceAndNoneIsLost() throws {
        poller.wake()
        poller.wake()
        #expect(try tokens(upTo: 10_000) == [Poller.wakeToken], "before the wait, as one")
        #expect(try tokens().isEmpty)
        poller.wake()
        #expect(try tokens(upTo: 10_000) == [Poller.wakeToken])
    }

    @Test func aWaitEndsWithoutEventsWhenItsTimeIsOver() throws {
        #expect(poller.add(pair.near, for: EPOLLIN.rawValue, token: 1))
        #expect(try tokens(upTo: 1).isEmpty)
    }
}
