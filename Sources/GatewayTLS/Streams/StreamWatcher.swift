import CLinux
import Foundation
import Glibc

/// Reports to an event loop which of its streams' sockets are readable or writable.
///
/// It waits on a dedicated thread, because NIO's selector accepts only the sockets of channels.
/// Readers of an event stream send next to nothing, so the thread sleeps during deliveries.
final class StreamWatcher: Sendable {
    /// An event on one socket.
    struct News: Sendable {
        /// The token that the socket was added with.
        let token: UInt64
        /// Whether there is something to read, or the connection ended.
        let isReadable: Bool
        /// Whether the socket accepts bytes again.
        let isWritable: Bool
    }

    private static let stopToken = UInt64.max
    private static let newsMax = 1_024
    /// The pause between two reports, in microseconds. When many readers come and go, events of
    /// this time are reported together, because each report costs two thread switches.
    private static let restMicroseconds: UInt32 = 5_000
    private static let input = EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue

    private let poll: Int32
    /// An event descriptor; signalled to end the thread.
    private let stop: Int32

    /// Starts the thread, which calls `tell` with the events.
    ///
    /// - Throws: `TLSError` of code `engine` when the kernel provides no descriptors.
    init(tell: @escaping @Sendable ([News]) -> Void) throws(TLSError) {
        let poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        let stop = eventfd(0, Int32(EFD_CLOEXEC))
        guard poll >= 0, stop >= 0 else {
            let reason = String(cString: strerror(errno))
            if poll >= 0 { Glibc.close(poll) }
            if stop >= 0 { Glibc.close(stop) }
            throw TLSError(.engine, "no descriptors for watching streams: \(reason)")
        }
        (self.poll, self.stop) = (poll, stop)
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = Self.stopToken
        epoll_ctl(poll, EPOLL_CTL_ADD, stop, &event)
        // The thread closes its descriptors itself: they must stay open while it waits on them.
        let thread = Thread {
            gateway_name_thread("stream watcher")
            Self.watch(poll, tell)
            Glibc.close(stop)
            Glibc.close(poll)
        }
        thread.stackSize = 256 * 1024
        thread.start()
    }

    /// Ends the thread.
    deinit { eventfd_write(stop, 1) }

    /// Watches a socket until it is closed; returns whether the kernel agreed.
    func add(_ socket: Int32, token: UInt64) -> Bool {
        control(EPOLL_CTL_ADD, socket: socket, events: Self.input, token: token)
    }

    /// Reports also when the socket accepts bytes, from now on; returns whether the kernel agreed.
    func watchRoom(_ socket: Int32, token: UInt64) -> Bool {
        control(EPOLL_CTL_MOD, socket: socket, events: Self.input | EPOLLOUT.rawValue, token: token)
    }

    private func control(
        _ operation: Int32, socket: Int32, events: UInt32, token: UInt64
    ) -> Bool {
        var event = epoll_event()
        event.events = events
        event.data.u64 = token
        return epoll_ctl(poll, operation, socket, &event) == 0
    }

    private static func watch(_ poll: Int32, _ tell: ([News]) -> Void) {
        var events = [epoll_event](repeating: epoll_event(), count: newsMax)
        while true {
            let count = epoll_wait(poll, &events, Int32(newsMax), -1)
            if count < 0 {
                if errno == EINTR { continue }
                return
            }
            let news = events.prefix(Int(count))
            if news.contains(where: { $0.data.u64 == stopToken }) { return }
            tell(
                news.map {
                    News(
                        token: $0.data.u64,
                        isReadable: $0.events & ~EPOLLOUT.rawValue != 0,
                        isWritable: $0.events & (EPOLLOUT.rawValue | EPOLLERR.rawValue) != 0)
                })
            usleep(restMicroseconds)
        }
    }
}
