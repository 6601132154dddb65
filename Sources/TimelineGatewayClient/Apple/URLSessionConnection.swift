// CI, which runs on Linux, compiles this against stubs: see Deploy/check-client.
#if canImport(WidgetKit)
    import Foundation

    /// Connects to a gateway with `URLSession`, using the system's trust store and HTTP/2.
    public final class URLSessionConnection: GatewayConnection {
        private let exchanges: HTTPExchanges
        private let session: URLSession

        /// Creates a connection to one gateway.
        ///
        /// - Parameters:
        ///   - gateway: Its origin, such as `https://gateway.example.com:8443`.
        ///   - deadlines: The deadlines of connecting, of requests, and of silent streams.
        ///   - bearerToken: Called before each request, so that the token can be replaced.
        /// - Returns: `nil` when the gateway is not an `https` origin.
        public init?(
            gateway: String, deadlines: ConnectionDeadlines = ConnectionDeadlines(),
            bearerToken: @escaping @Sendable () -> String?
        ) {
            guard let origin = URLSessionConnection.origin(gateway) else { return nil }
            let configuration = URLSessionConfiguration.ephemeral
            // A key set from a cache would lack a key that the gateway has begun to sign with.
            configuration.urlCache = nil
            // Its own timeout must not pass first.
            configuration.timeoutIntervalForRequest =
                max(deadlines.head, deadlines.request, deadlines.silence) / .seconds(1)
            let session = URLSession(configuration: configuration)
            self.session = session
            exchanges = HTTPExchanges(deadlines: deadlines) {
                (request: GatewayRequest) async throws(ConnectionError) -> HTTPExchange in
                guard let url = URL(string: origin + request.target) else {
                    throw ConnectionError(
                        .badRequest, "the request's target is not valid in a URL")
                }
                var order = URLRequest(url: url)
                order.httpMethod = request.method
                order.httpBody = request.body.map { Data($0) }
                for (name, value) in request.headers {
                    order.setValue(value, forHTTPHeaderField: name)
                }
                if let token = bearerToken() {
                    order.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
                }
                return try await URLSessionConnection.exchange(order, by: session)
            }
        }

        deinit { session.finishTasksAndInvalidate() }

        /// Sends a request and reads its whole response.
        public func send(
            _ request: GatewayRequest
        ) async throws(ConnectionError) -> GatewayResponse {
            try await exchanges.send(request)
        }

        /// Sends a request and returns as soon as the head of its response has arrived.
        public func stream(
            _ request: GatewayRequest
        ) async throws(ConnectionError) -> GatewayStream {
            try await exchanges.stream(request)
        }

        private static func exchange(
            _ order: URLRequest, by session: URLSession
        ) async throws(ConnectionError) -> HTTPExchange {
            do {
                let (bytes, response) = try await session.bytes(for: order, delegate: Redirects())
                let task = bytes.task
                guard let answer = response as? HTTPURLResponse else {
                    task.cancel()
                    throw URLError(.badServerResponse)
                }
                let fields = answer.allHeaderFields.compactMap { name, value in
                    (name as? String).map { (name: $0, value: "\(value)") }
                }
                let pieces = Pieces(bytes)
                return HTTPExchange(
                    head: GatewayResponseHead(status: answer.statusCode, headers: fields),
                    next: { () async throws(ConnectionError) -> [UInt8]? in
                        try await pieces.next()
                    }, end: { task.cancel() })
            } catch {
                throw ConnectionError(error)
            }
        }

        /// Returns redirects to the caller instead of following them: a token must not reach
        /// another host.
        private final class Redirects: NSObject, URLSessionTaskDelegate {
            func urlSession(
                _ session: URLSession, task: URLSessionTask,
                willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
            ) async -> URLRequest? { nil }
        }

        /// Returns a body line by line, so that no event waits for the bytes that follow it.
        private actor Pieces {
            private static let bytesMax = 16 * 1024
            private var iterator: URLSession.AsyncBytes.AsyncIterator

            init(_ bytes: URLSession.AsyncBytes) { iterator = bytes.makeAsyncIterator() }

            func next() async throws(ConnectionError) -> [UInt8]? {
                var piece: [UInt8] = []
                // A copy, because an actor's property cannot be borrowed across a suspension.
                // Copies share their position, and no other code reads from this iterator.
                var bytes = iterator
                do {
                    while let byte = try await bytes.next(isolation: self) {
                        piece.append(byte)
                        if byte == UInt8(ascii: "\n") || piece.count == Self.bytesMax { break }
                    }
                } catch {
                    throw ConnectionError(error)
                }
                iterator = bytes
                return piece.isEmpty ? nil : piece
            }
        }
    }

    extension ConnectionError {
        /// Maps an error of `URLSession` to a code.
        fileprivate init(_ error: any Error) {
            let code: Code =
                switch (error as? URLError)?.code {
                case .cannotFindHost, .dnsLookupFailed: .unresolved
                case .cannotConnectToHost, .notConnectedToInternet: .unreachable
                case .secureConnectionFailed, .serverCertificateUntrusted,
                    .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
                    .serverCertificateNotYetValid:
                    .notTrusted
                case .timedOut: .timedOut
                case .cancelled: .cancelled
                default: error is CancellationError ? .cancelled : .broken
                }
            // Never includes the error's own text, which may contain the request's URL.
            let number = (error as? URLError)?.code.rawValue
            self.init(code, "the request failed" + (number.map { " with \($0)" } ?? ""))
        }
    }
#endif
