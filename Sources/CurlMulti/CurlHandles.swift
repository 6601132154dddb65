import CCurl

/// libcurl's multi handle: the requests under way of one thread, and the connections they share.
package struct CurlMulti {
    private let pointer: UnsafeMutableRawPointer
    private let sockets: CurlSockets

    /// Once per process, before any other call.
    private static let isInitialised = {
        keepOpenSSLAtExit()
        return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
    }()

    /// `nil` when libcurl has no memory.
    init?(corkedMax: Int) {
        guard Self.isInitialised, let pointer = curl_multi_init() else { return nil }
        self.pointer = pointer
        sockets = CurlSockets(corkedMax: corkedMax)
        guard sockets.serve(pointer) else {
            curl_multi_cleanup(pointer)
            return nil
        }
    }

    /// Bounds what the requests share; `false` when libcurl does not know the option.
    package func set(_ option: CURLMoption, _ value: Int) -> Bool {
        client_curl_multi_set_long(pointer, option, value) == CURLM_OK
    }

    /// Begins a request; `false` when libcurl has no memory, or it has begun already.
    package func add(_ easy: CurlEasy) -> Bool {
        curl_multi_add_handle(pointer, easy.pointer) == CURLM_OK
    }

    /// Ends a request, whatever is still to come of it.
    package func remove(_ easy: CurlEasy) {
        curl_multi_remove_handle(pointer, easy.pointer)
    }

    /// Waits for a socket of a ``CurlStream`` too, to be read and perhaps to be written.
    package func watch(_ socket: curl_socket_t, toWrite: Bool) {
        sockets.watch(socket, toWrite ? CURL_POLL_INOUT : CURL_POLL_IN)
    }

    /// Waits for it no more; to be said before it is closed.
    package func unwatch(_ socket: curl_socket_t) {
        sockets.watch(socket, CURL_POLL_REMOVE)
    }

    /// Sleeps until a socket or `wake` is ready, libcurl has something due, or `milliseconds` are
    /// over, and has libcurl do what can be done without waiting.
    ///
    /// - Parameter onReady: Called with each socket that is ready and watched.
    /// - Returns: Whether `wake` is ready.
    func turn(
        _ milliseconds: Int32, wake: Int32, onReady: (curl_socket_t) -> Void
    ) -> Bool {
        var running: Int32 = 0
        let (ready, isWoken) = sockets.wait(milliseconds, wake: wake)
        for socket in ready {
            guard !socket.isWatched else {
                onReady(socket.descriptor)
                continue
            }
            curl_multi_socket_action(pointer, socket.descriptor, socket.readiness, &running)
        }
        if sockets.takeDue() {
            curl_multi_socket_action(pointer, CURL_SOCKET_TIMEOUT, 0, &running)
        }
        return isWoken
    }

    /// A request that has ended, if one has.
    func nextEnded() -> (easy: CurlEasy, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(pointer, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle
            else { continue }
            return (CurlEasy(easy), message.pointee.data.result)
        }
        return nil
    }

    /// Closes every connection; no request may be left in it.
    func free() {
        curl_multi_cleanup(pointer)
    }
}

/// libcurl's easy handle: one request, and after it the next. Used by one thread.
package struct CurlEasy {
    /// What libcurl's functions take.
    package let pointer: UnsafeMutableRawPointer

    /// A new handle; `nil` when libcurl has no memory.
    package init?() {
        guard let pointer = curl_easy_init() else { return nil }
        self.pointer = pointer
    }

    /// One that libcurl names.
    init(_ pointer: UnsafeMutableRawPointer) {
        self.pointer = pointer
    }

    /// What ``CurlOptions/context(_:)`` was given.
    package var context: UnsafeMutableRawPointer? { client_curl_get_context(pointer) }

    /// Forgets every option, but no TLS session; the handle must not be in a multi handle.
    func reset() {
        curl_easy_reset(pointer)
    }

    /// Frees the handle, which must not be in a multi handle any more.
    package func free() {
        curl_easy_cleanup(pointer)
    }
}
