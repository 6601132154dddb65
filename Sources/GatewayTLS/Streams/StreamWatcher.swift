import CLinux
import Foundation
import Glibc

/// Tells an event loop which of its streams' sockets have news.
///
/// A thread of its own waits, because NIO's selector takes no sockets but those of channels. Readers
/// of an event stream say next to nothing, so it sleeps through the deliveries.
final class StreamWatcher: Sendable {
    /// News of one socket.
    struct News: Sendable {
        /// What the socket was added with.
        let token: UInt64
        /// There is something to read, or the connection ended.
        let isReadable: Bool
        /// Bytes fit again.
        let isWritable: Bool
    }

    private static let stopToken = UInt64.max
    private static let newsMax = 1_024
    /// Between two tellings. When many readers come and go, what gathers meanwhile is told at once:
    /// each telling costs two changes of thread.
    private static let restMicroseconds: UInt32 = 5_000
    private static let input = EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue

    private let poll: Int32
    /// Made readable to end the thread.
    private let stop: Int32

    /// Starts the thread; `tell` is called on it.
    ///
    /// - Throws: `TLSError` of code `engine` when the kernel gives no descriptors.
    init(tell: @escaping @Sendable ([News]) -> Void) throws(TLSError) {
        let poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        let stop = eventfd(0, Int32(EFD_CLOEXEC))
        guard poll >= 0, stop >= 0 else {
            let reason = String(cString: strerror(errno))
            if poll >= 0 { Glibc.close(poll) }
            if stop >= 0 { Glibc.close(stop) }
            throw TLSError(.engine, "the kernel gives no descriptors to watch streams: \(reason)")
        }
        (self.poll, self.stop) = (poll, stop)
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = Self.stopToken
        epoll_ctl(poll, EPOLL_CTL_ADD, stop, &event)
        // The thread closes what it waits on: nobody else may while it does.
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

    /// Watches a socket until it is closed; answers whether the kernel agreed.
    func add(_ socket: Int32, token: UInt64) -> Bool {
        control(EPOLL_CTL_ADD, socket, Self.input, token)
    }

    /// Also tells when bytes fit again, from now on; answers whether the kernel agreed.
    func watchRoom(_ socket: Int32, token: UInt64) -> Bool {
        control(EPOLL_CTL_MOD, socket, Self.input | EPOLLOUT.rawValue, token)
    }

    private func control(
        _ operation: Int32, _ socket: Int32, _ events: UInt32, _ token: UInt64
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
