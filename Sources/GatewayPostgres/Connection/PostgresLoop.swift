import CLinux
import Foundation
import Synchronization

/// A thread that waits for the sockets of a node's few sessions, and runs their owners.
///
/// Looking for what is ready is linear in the number of members, which is at most four.
package final class PostgresLoop: Sendable {
    /// The owner of a session. It is created, called and freed on the loop's thread.
    package protocol Member: AnyObject {
        /// The descriptor to wait for, with the events of poll(2); `nil` without a connection.
        var interest: (descriptor: Int32, events: Int16)? { get }
        /// The time of the next turn without an event, in milliseconds of ``PostgresLoop/now``.
        var nextTurn: Int64? { get }
        /// Does what is due; called after each wake, whether or not the descriptor is ready.
        func turn(at now: Int64)
    }

    private struct Inbox {
        var additions: [@Sendable () -> any Member] = []
        var isEnding = false
    }

    /// An event descriptor; signalled to end a wait.
    private let alarm: Int32
    private let inbox = Mutex(Inbox())

    /// Monotonic milliseconds that go on while the machine sleeps (`CLOCK_BOOTTIME`).
    package static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Starts the thread.
    ///
    /// - Parameter name: The name of the thread, as the kernel shows it.
    /// - Throws: `PostgresError.connectionLost` when the kernel provides no descriptor.
    package init(name: String) throws(PostgresError) {
        alarm = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        guard alarm >= 0 else {
            throw .connectionLost(reason: "no descriptor: \(String(cString: strerror(errno)))")
        }
        let thread = Thread {
            gateway_name_thread(name)
            self.run()
        }
        thread.start()
    }

    deinit { if alarm >= 0 { close(alarm) } }

    /// Adds a member, which `make` creates on the thread.
    package func add(_ make: @escaping @Sendable () -> any Member) {
        inbox.withLock { $0.additions.append(make) }
        wake()
    }

    /// Gives every member a turn soon.
    package func wake() { eventfd_write(alarm, 1) }

    /// Frees all members on the thread, which ends; returns without waiting for it.
    package func end() {
        inbox.withLock { $0.isEnding = true }
        wake()
    }

    private func run() {
        var members: [any Member] = []
        while true {
            let news = inbox.withLock { inbox -> Inbox in
                defer { inbox.additions = [] }
                return inbox
            }
            if news.isEnding { return }
            for make in news.additions { members.append(make()) }
            let now = Self.now
            for member in members { member.turn(at: now) }
            wait(for: members)
        }
    }

    private func wait(for members: [any Member]) {
        var descriptors = [pollfd(fd: alarm, events: Int16(POLLIN), revents: 0)]
        var next: Int64?
        for member in members {
            if let (descriptor, events) = member.interest {
                descriptors.append(pollfd(fd: descriptor, events: events, revents: 0))
            }
            if let turn = member.nextTurn { next = min(next ?? turn, turn) }
        }
        let milliseconds = next.map { Int32(clamping: max(0, $0 - Self.now)) } ?? -1
        _ = poll(&descriptors, nfds_t(descriptors.count), milliseconds)
        var count: eventfd_t = 0
        eventfd_read(alarm, &count)
    }
}
