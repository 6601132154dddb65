import CCurl
import Foundation

/// The sockets that a multi handle waits for, and the time at which it has something to do.
///
/// Not `curl_multi_poll`: while requests wait for room on a connection, libcurl 7.88 sleeps in it
/// although it has already read responses.
final class CurlSockets {
    struct Ready {
        let descriptor: curl_socket_t
        /// The readiness as libcurl's `CURL_CSELECT_` bits.
        let readiness: Int32
        /// Whether the socket is watched for the caller and not handled by libcurl.
        let isWatched: Bool
    }

    /// The descriptors to poll. The first one is the caller's own.
    private var polled = [pollfd(fd: -1, events: Int16(POLLIN), revents: 0)]
    private var places: [curl_socket_t: Int] = [:]
    private var ready: [Ready] = []
    /// Sockets that are watched for the caller and not handled by libcurl.
    private var watched: Set<curl_socket_t> = []
    private var due: ContinuousClock.Instant?
    /// The most sockets that are corked: with more it would take longer than it saves.
    private let corkedMax: Int
    private var isCorked = false

    /// - Parameter corkedMax: With at most this many sockets, the two or three writes that libcurl
    ///   makes for each request are sent together, when the thread sleeps next.
    init(corkedMax: Int) {
        self.corkedMax = corkedMax
    }

    /// Makes a multi handle, which must not outlive this object, report what it waits for; returns
    /// whether libcurl accepted the callbacks.
    func serve(_ multi: UnsafeMutableRawPointer) -> Bool {
        // Sound: the handle's owner holds this object as long as the handle.
        let context = Unmanaged.passUnretained(self).toOpaque()
        return client_curl_multi_set_socket_callback(multi, onSocket, context) == CURLM_OK
            && client_curl_multi_set_timer_callback(multi, onTimer, context) == CURLM_OK
    }

    /// Waits until a socket or `wake` is ready, something is due, or `milliseconds` have passed.
    func wait(_ milliseconds: Int32, wake: Int32) -> (ready: [Ready], isWoken: Bool) {
        polled[0].fd = wake
        ready.removeAll(keepingCapacity: true)
        let patience = min(milliseconds, untilDue)
        if patience > 0 { cork(false) }
        let count = poll(&polled, nfds_t(polled.count), patience)
        cork(true)
        guard count > 0 else { return (ready, false) }
        for entry in polled.dropFirst() where entry.revents != 0 {
            var readiness: Int32 = 0
            let bad = Int16(POLLERR) | Int16(POLLNVAL)
            if entry.revents & (Int16(POLLIN) | Int16(POLLHUP) | bad) != 0 {
                readiness |= CURL_CSELECT_IN
            }
            if entry.revents & Int16(POLLOUT) != 0 { readiness |= CURL_CSELECT_OUT }
            if entry.revents & bad != 0 { readiness |= CURL_CSELECT_ERR }
            ready.append(
                Ready(
                    descriptor: entry.fd, readiness: readiness,
                    isWatched: !watched.isEmpty && watched.contains(entry.fd)))
        }
        return (ready, polled[0].revents != 0)
    }

    /// Watches a socket that libcurl does not handle; `interest` is one of libcurl's `CURL_POLL_`
    /// values.
    func watch(_ socket: curl_socket_t, _ interest: Int32) {
        if interest == CURL_POLL_REMOVE {
            guard watched.remove(socket) != nil else { return }
        } else {
            watched.insert(socket)
        }
        wait(for: socket, interest)
    }

    /// Returns whether something is due now, and resets the due time if so.
    func takeDue() -> Bool {
        guard let due, due <= .now else { return false }
        self.due = nil
        return true
    }

    /// Holds back partial packets, or sends them.
    private func cork(_ isWanted: Bool) {
        #if os(Linux)
            guard isCorked != isWanted, !isWanted || polled.count <= 1 + corkedMax else { return }
            isCorked = isWanted
            for entry in polled.dropFirst() {
                var value: Int32 = isWanted ? 1 : 0
                setsockopt(
                    entry.fd, CInt(IPPROTO_TCP), TCP_CORK, &value,
                    socklen_t(MemoryLayout<Int32>.size))
            }
        #endif
    }

    private var untilDue: Int32 {
        guard let due else { return .max }
        let left = due - .now
        // Rounded up: waking too early is useless.
        return left <= .zero ? 0 : Int32(clamping: (left + .microseconds(999)).curlMilliseconds)
    }

    fileprivate func wait(for socket: curl_socket_t, _ interest: Int32) {
        guard interest != CURL_POLL_REMOVE else {
            guard let place = places.removeValue(forKey: socket) else { return }
            let last = polled.removeLast()
            if place < polled.count {
                polled[place] = last
                places[last.fd] = place
            }
            return
        }
        var events: Int16 = 0
        if interest & CURL_POLL_IN != 0 { events |= Int16(POLLIN) }
        if interest & CURL_POLL_OUT != 0 { events |= Int16(POLLOUT) }
        if let place = places[socket] {
            polled[place].events = events
        } else {
            places[socket] = polled.count
            polled.append(pollfd(fd: socket, events: events, revents: 0))
        }
    }

    fileprivate func isDue(in milliseconds: Int) {
        due = milliseconds < 0 ? nil : .now + .milliseconds(milliseconds)
    }
}

/// Called by libcurl with the events that it waits for on a socket.
private let onSocket:
    @convention(c) (
        UnsafeMutableRawPointer?, curl_socket_t, Int32, UnsafeMutableRawPointer?,
        UnsafeMutableRawPointer?
    ) -> Int32 = { _, socket, interest, context, _ in
        guard let context else { return -1 }
        // Sound: the multi handle does not outlive its sockets.
        Unmanaged<CurlSockets>.fromOpaque(context).takeUnretainedValue().wait(for: socket, interest)
        return 0
    }

/// Called by libcurl with the time until it has something to do.
private let onTimer:
    @convention(c) (UnsafeMutableRawPointer?, Int, UnsafeMutableRawPointer?) -> Int32 = {
        _, milliseconds, context in
        guard let context else { return -1 }
        // Sound: as before.
        Unmanaged<CurlSockets>.fromOpaque(context).takeUnretainedValue().isDue(in: milliseconds)
        return 0
    }
