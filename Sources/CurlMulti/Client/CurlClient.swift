import CCurl

/// An HTTP client on libcurl: one thread, and the connections that its requests share.
///
/// HTTP/2 carries many requests over one connection where the peer offers it, as many at once as
/// the peer and ``Configuration/streamsMax`` allow. Redirects are responses and never followed.
///
/// libcurl cannot send an HTTP/2 PING for a client (`curl_easy_upkeep` reaches no multi handle), so
/// idle connections are kept alive by TCP.
package final class CurlClient: Sendable {
    private let limiter: ConcurrencyLimiter
    private let loop: CurlLoop<TransferDriver>

    /// Creates a client; no connection is opened before the first request.
    ///
    /// - Throws: ``CurlError`` (`noMemory`) when libcurl has no memory or lacks an option.
    package init(_ configuration: Configuration) throws(CurlError) {
        let limiter = ConcurrencyLimiter(configuration)
        let loop = CurlLoop(
            name: configuration.name, corkedMax: 8,
            configure: { multi in
                multi.set(CURLMOPT_MAX_HOST_CONNECTIONS, configuration.connectionsPerHostMax)
                    && multi.set(CURLMOPT_MAX_TOTAL_CONNECTIONS, configuration.connectionsMax)
                    && multi.set(CURLMOPT_MAXCONNECTS, configuration.connectionsMax)
                    && multi.set(CURLMOPT_MAX_CONCURRENT_STREAMS, configuration.streamsMax)
            },
            driver: { TransferDriver(configuration, limiter) })
        guard let loop else { throw CurlError(.noMemory, "libcurl could not be initialised") }
        self.limiter = limiter
        self.loop = loop
    }

    deinit {
        close()
    }

    /// Sends a request, after waiting for room in the client, and returns its response. Cancelling
    /// the task ends the request.
    ///
    /// - Parameter bodyBytesMax: The most bytes read of the response's body; the rest is not
    ///   read.
    /// - Throws: ``CurlError`` when no status arrived.
    package func send(
        _ request: CurlRequest, bodyBytesMax: Int = 16 * 1_024
    ) async throws(CurlError) -> CurlResponse {
        try await CurlReader(self, request, .ends(at: bodyBytesMax)).response()
    }

    /// Sends a request whose response is read in pieces.
    ///
    /// - Parameter bufferBytesMax: Bytes kept for a slow reader before the peer has to wait.
    package func stream(_ request: CurlRequest, bufferBytesMax: Int) -> CurlReader {
        CurlReader(self, request, .pauses(at: bufferBytesMax))
    }

    /// Sends a request, as soon as there is room, and reports its events to `receiver`.
    package func start(_ request: CurlRequest, receiver: any TransferReceiver) -> CurlCall {
        let call = CurlCall(request, receiver)
        limiter.admit(call, to: loop)
        return call
    }

    /// Ends a request, whether it waits or is in flight. Has no effect on one that has ended.
    package func cancel(_ call: CurlCall) {
        limiter.cancel(call, in: loop)
    }

    /// Offers the receiver of a request the piece again that it did not accept.
    func resume(_ call: CurlCall) {
        _ = loop.submit(.resume(call))
    }

    /// Rejects new requests, waits for those in flight and those that wait to end, and closes.
    /// Returns only if each of them has a timeout; cancelling the task ends them all.
    package func drain() async {
        await withTaskCancellationHandler {
            await limiter.drain()
            close()
            await limiter.end()
        } onCancel: {
            close()
        }
    }

    /// Ends every request with `closed`, and rejects new ones.
    package func close() {
        limiter.close()
        loop.stop()
    }

    /// The client's current requests, handles and sockets.
    package var stats: Stats { limiter.stats }

    /// The numbers of a client's current requests, handles and sockets.
    package struct Stats: Sendable, Hashable {
        /// Requests that were accepted and have not ended.
        package var inFlight = 0
        /// Requests that wait for room.
        package var waiting = 0
        /// Easy handles of libcurl: no more than there were requests in flight at once.
        package var handles = 0
        /// Open sockets.
        package var connections = 0

        /// Numbers that are all zero.
        package init() {}
    }
}
