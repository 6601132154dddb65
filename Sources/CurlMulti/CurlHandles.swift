import CCurl

/// libcurl's multi handle: the requests in flight on one thread, and the connections they share.
package struct CurlMulti {
    private let pointer: UnsafeMutableRawPointer
    private let sockets: CurlSockets

    /// Initialises libcurl: once per process, before any other call.
    private static let isInitialised = {
        keepOpenSSLAtExit()
        return curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
    }()

    /// Returns `nil` when libcurl has no memory.
    init?(corkedMax: Int) {
        guard Self.isInitialised, let pointer = curl_multi_init() else { return nil }
        self.pointer = pointer
        sockets = CurlSockets(corkedMax: corkedMax)
        guard sockets.serve(pointer) else {
            curl_multi_cleanup(pointer)
            return nil
        }
    }

    /// Sets a limit that the requests share; returns false when libcurl does not know the option.
    package func set(_ option: CURLMoption, _ value: Int) -> Bool {
        client_curl_multi_set_long(pointer, option, value) == CURLM_OK
    }

    /// Begins a request; returns false when libcurl has no memory, or the request has begun
    /// already.
    package func add(_ easy: CurlEasy) -> Bool {
        curl_multi_add_handle(pointer, easy.pointer) == CURLM_OK
    }

    /// Ends a request, even if it is not complete.
    package func remove(_ easy: CurlEasy) {
        curl_multi_remove_handle(pointer, easy.pointer)
    }

    /// Watches the socket of a ``CurlStream``, for reading and, if asked, for writing.
    package func watch(_ socket: curl_socket_t, toWrite: Bool) {
        sockets.watch(socket, toWrite ? CURL_POLL_INOUT : CURL_POLL_IN)
    }

    /// Stops watching a socket; to be called before the socket is closed.
    package func unwatch(_ socket: curl_socket_t) {
        sockets.watch(socket, CURL_POLL_REMOVE)
    }

    /// Waits up to `milliseconds` for a socket, `wake` or libcurl's timer; then lets libcurl do
    /// what needs no waiting. Returns whether `wake` is ready.
    ///
    /// - Parameter onReady: Called with each watched socket that is ready.
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

    /// Returns a request that has ended, with its result; `nil` if none has.
    func nextEnded() -> (easy: CurlEasy, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(pointer, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle
            else { continue }
            return (CurlEasy(easy), message.pointee.data.result)
        }
        return nil
    }

    /// Closes every connection; no request may be left in the handle.
    func free() {
        curl_multi_cleanup(pointer)
    }
}

/// libcurl's easy handle, used for one request after another. Used by one thread.
package struct CurlEasy {
    /// The handle for libcurl's functions.
    package let pointer: UnsafeMutableRawPointer

    /// A new handle; `nil` when libcurl has no memory.
    package init?() {
        guard let pointer = curl_easy_init() else { return nil }
        self.pointer = pointer
    }

    /// A handle that libcurl returned.
    init(_ pointer: UnsafeMutableRawPointer) {
        self.pointer = pointer
    }

    /// The pointer passed to ``CurlOptions/context(_:)``.
    package var context: UnsafeMutableRawPointer? { client_curl_get_context(pointer) }

    /// Resets every option but keeps TLS sessions; the handle must not be in a multi handle.
    func reset() {
        curl_easy_reset(pointer)
    }

    /// Frees the handle, which must not be in a multi handle any more.
    package func free() {
        curl_easy_cleanup(pointer)
    }
}
