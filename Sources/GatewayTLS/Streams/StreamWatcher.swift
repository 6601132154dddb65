import CLinux
import Foundation
import Glibc

/// Reports to an event loop which of its streams' sockets are readable or writable.
///
/// It waits on a dedicated thread, because NIO's selector accepts only the sockets of channels.
/// Readers of an event stream send next to nothing, so the thread sleeps during deliveries. It is not
/// the thread of an `AcceptorLoop`, which is busy for 0.3 to 0.5 ms with each handshake.
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

    private static let newsMax = 1_024
    /// The pause between two reports, in microseconds. When many readers come and go, events of
    /// this time are reported together, because each report costs two thread switches.
    private static let restMicroseconds: UInt32 = 5_000
    private static let input = EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue

    private let poller: Poller

    /// Starts the thread, which calls `tell` with the events. Throws `TLSError` (`engine`) when the
    /// kernel provides no descriptors.
    init(tell: @escaping @Sendable ([News]) -> Void) throws(TLSError) {
        let poller = try Poller(for: "watching streams")
        self.poller = poller
        // The thread holds the poller, too: it must stay open while the thread waits on it.
        let thread = Thread {
            gateway_name_thread("stream watcher")
            Self.watch(poller, tell)
        }
        thread.stackSize = 256 * 1024
        thread.start()
    }

    /// Ends the thread.
    deinit { poller.wake() }

    /// Watches a socket until it is closed; returns whether the kernel agreed.
    func add(_ socket: Int32, token: UInt64) -> Bool {
        poller.add(socket, for: Self.input, token: token)
    }

    /// Reports also when the socket accepts bytes, from now on; returns whether the kernel agreed.
    func watchRoom(_ socket: Int32, token: UInt64) -> Bool {
        poller.modify(socket, for: Self.input | EPOLLOUT.rawValue, token: token)
    }

    private static func watch(_ poller: Poller, _ tell: ([News]) -> Void) {
        var events = [epoll_event](repeating: epoll_event(), count: newsMax)
        while let ready = poller.wait(upTo: -1, into: &events) {
            // A signal ends a wait without events.
            guard !ready.isEmpty else { continue }
            if ready.contains(where: { $0.data.u64 == Poller.wakeToken }) { return }
            tell(
                ready.map {
                    News(
                        token: $0.data.u64,
                        isReadable: $0.events & ~EPOLLOUT.rawValue != 0,
                        isWritable: $0.events & (EPOLLOUT.rawValue | EPOLLERR.rawValue) != 0)
                })
            usleep(restMicroseconds)
        }
    }
}
