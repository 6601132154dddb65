/// The deadlines of a ``GatewayConnection``.
public struct ConnectionDeadlines: Sendable, Hashable {
    /// The longest time until the head of a response arrives, connecting and TLS included. A long
    /// poll has ``request`` instead.
    public var head: Duration = .seconds(10)
    /// The longest time of a request that is not a stream.
    public var request: Duration = .seconds(60)
    /// The longest silence of a stream: three heartbeats of 15 s.
    public var silence: Duration = .seconds(45)

    /// Creates the default deadlines.
    public init() {}
}

/// One exchange of an HTTP library. Releasing it ends the exchange.
final class HTTPExchange: Sendable {
    let head: GatewayResponseHead
    let next: @Sendable () async throws(ConnectionError) -> [UInt8]?
    let end: @Sendable () -> Void

    /// `next` returns the next piece of the body, never empty; `nil` at its end. `end` ends the
    /// exchange; it is called at least once, also after the end of the body.
    init(
        head: GatewayResponseHead,
        next: @escaping @Sendable () async throws(ConnectionError) -> [UInt8]?,
        end: @escaping @Sendable () -> Void
    ) {
        self.head = head
        self.next = next
        self.end = end
    }

    deinit { end() }
}

/// Fulfils the duties of a ``GatewayConnection`` for an HTTP library that only opens exchanges:
/// deadlines, limits, cancellation, and the end of an exchange whose body is not read to its end.
struct HTTPExchanges: Sendable {
    let deadlines: ConnectionDeadlines
    /// Sends a request; returns as soon as the head of its response has arrived.
    let open: @Sendable (GatewayRequest) async throws(ConnectionError) -> HTTPExchange

    /// Sends a request and reads its whole response, as ``GatewayConnection/send(_:)`` promises.
    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse {
        let start = ContinuousClock.now
        let waits = request.headers.contains { $0.name == "prefer" }
        let exchange = try await opened(
            request,
            within: waits ? deadlines.request : min(deadlines.head, deadlines.request))
        // Cancelling the task that reads may not end it.
        defer { exchange.end() }
        return try await limited(deadlines.request - start.duration(to: .now)) {
            () async throws(ConnectionError) -> GatewayResponse in
            var body: [UInt8] = []
            while let piece = try await exchange.next() {
                guard body.count + piece.count <= request.responseBytesMax else {
                    throw ConnectionError(.tooLarge, "the response is too long")
                }
                body += piece
            }
            return GatewayResponse(head: exchange.head, body: body)
        }
    }

    /// Opens a stream, as ``GatewayConnection/stream(_:)`` promises.
    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream {
        let exchange = try await opened(request, within: deadlines.head)
        let silence = deadlines.silence
        let body = GatewayBody { () async throws(ConnectionError) -> [UInt8]? in
            do throws(ConnectionError) {
                return try await limited(silence) { () async throws(ConnectionError) -> [UInt8]? in
                    try await exchange.next()
                }
            } catch {
                exchange.end()
                // A library's own timeout says nothing else.
                guard error.code == .timedOut else { throw error }
                throw ConnectionError(.silent, "the stream was silent for too long")
            }
        }
        return GatewayStream(head: exchange.head, body: body)
    }

    private func opened(
        _ request: GatewayRequest, within limit: Duration
    ) async throws(ConnectionError) -> HTTPExchange {
        try await limited(limit) { () async throws(ConnectionError) -> HTTPExchange in
            try await open(request)
        }
    }
}

/// Returns the outcome of `work`, or throws its error. When `limit` passes first, or the calling
/// task is cancelled, cancels the work, drops its outcome and throws `timedOut` or `cancelled`.
private func limited<Value: Sendable>(
    _ limit: Duration, _ work: @escaping @Sendable () async throws(ConnectionError) -> Value
) async throws(ConnectionError) -> Value {
    let task = Task { () async -> Result<Value, ConnectionError> in
        do throws(ConnectionError) {
            return .success(try await work())
        } catch {
            return .failure(error)
        }
    }
    let outcome = await withTaskCancellationHandler {
        await value(of: task, within: limit)
    } onCancel: {
        task.cancel()
    }
    guard let outcome else {
        task.cancel()
        throw Task.isCancelled
            ? ConnectionError(.cancelled, "the calling task was cancelled")
            : ConnectionError(.timedOut, "the gateway did not answer in time")
    }
    return try outcome.get()
}

/// Returns the value of a task; `nil` when `limit` passes first, or the calling task is cancelled.
/// The task itself goes on.
package func value<Value: Sendable>(
    of task: Task<Value, Never>, within limit: Duration
) async -> Value? {
    let (values, continuation) = AsyncStream.makeStream(of: Value?.self)
    Task {
        continuation.yield(await task.value)
        continuation.finish()
    }
    let timer = Task {
        try? await Task.sleep(for: limit)
        continuation.yield(nil)
        continuation.finish()
    }
    defer { timer.cancel() }
    for await value in values { return value }
    return nil
}
