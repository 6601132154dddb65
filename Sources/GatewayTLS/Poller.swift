import CLinux
import Glibc

/// Waits on one thread until descriptors are ready, by epoll(7). Other threads may change the masks
/// that it waits for (epoll_ctl(2)), and wake it. Waiting allocates nothing: the caller provides
/// the memory for the events.
package final class Poller: Sendable {
    /// The token of the event that `wake` causes; no descriptor may have it.
    package static let wakeToken = UInt64.max

    private let poll: Int32
    /// An event descriptor; signalled to end a wait.
    private let alarm: Int32

    /// Creates a poller that waits for `wake` alone; `purpose` names its use in the error's
    /// message. Throws `TLSError` (`engine`) when the kernel provides no descriptors.
    package init(for purpose: String) throws(TLSError) {
        poll = epoll_create1(Int32(EPOLL_CLOEXEC))
        alarm = eventfd(0, Int32(EFD_CLOEXEC))
        // Reported once per signal, so that its counter need not be read.
        let once = EPOLLIN.rawValue | EPOLLET.rawValue
        guard poll >= 0, alarm >= 0, add(alarm, for: once, token: Self.wakeToken) else {
            let reason = String(cString: strerror(errno))
            throw TLSError(.engine, "no descriptors for \(purpose): \(reason)")
        }
    }

    // Runs for a poller that failed to begin, too.
    deinit {
        if poll >= 0 { Glibc.close(poll) }
        if alarm >= 0 { Glibc.close(alarm) }
    }

    /// Waits for a descriptor until it is removed or closed; returns whether the kernel agreed.
    package func add(_ descriptor: Int32, for interest: UInt32, token: UInt64) -> Bool {
        control(EPOLL_CTL_ADD, descriptor, for: interest, token: token)
    }

    /// Replaces what a descriptor is waited for; returns whether the kernel agreed.
    package func modify(_ descriptor: Int32, for interest: UInt32, token: UInt64) -> Bool {
        control(EPOLL_CTL_MOD, descriptor, for: interest, token: token)
    }

    /// Waits for a descriptor no more.
    package func remove(_ descriptor: Int32) { epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, nil) }

    private func control(
        _ operation: Int32, _ descriptor: Int32, for interest: UInt32, token: UInt64
    ) -> Bool {
        var event = epoll_event()
        event.events = interest
        event.data.u64 = token
        return epoll_ctl(poll, operation, descriptor, &event) == 0
    }

    /// Ends the wait under way, or the next one, with an event of `wakeToken`.
    package func wake() { eventfd_write(alarm, 1) }

    /// Waits until a descriptor is ready, `wake` is called or the time is over.
    ///
    /// - Parameters:
    ///   - milliseconds: The longest wait; -1 for no end.
    ///   - events: Memory for as many events as it has elements.
    /// - Returns: The events, in `events`; none when the time is over or a signal came; `nil` when
    ///   the kernel refuses to wait.
    package func wait(
        upTo milliseconds: Int32, into events: inout [epoll_event]
    ) -> ArraySlice<epoll_event>? {
        let count = epoll_wait(poll, &events, Int32(clamping: events.count), milliseconds)
        guard count >= 0 || errno == EINTR else { return nil }
        return events.prefix(Int(max(0, count)))
    }
}
