// Not compiled by CI, which runs on Linux: kept short enough to be checked by reading.
#if canImport(Darwin)
    import Foundation

    /// Connects to a gateway with `URLSession`, using the system's trust store and HTTP/2.
    public final class URLSessionConnection: NSObject, GatewayConnection, URLSessionTaskDelegate {
        /// The longest silence on a request or a stream, seconds: three heartbeats.
        private static let silenceMax: TimeInterval = 45

        private let gateway: String
        private let bearerToken: @Sendable () -> String?
        private let session = URLSession(configuration: .ephemeral)

        /// Creates a connection to one gateway.
        ///
        /// - Parameters:
        ///   - gateway: Its origin, such as `https://gateway.example.com:8443`.
        ///   - bearerToken: Called before each request, so that the token can be replaced.
        /// - Returns: `nil` when the gateway is not an `https` origin.
        public init?(gateway: String, bearerToken: @escaping @Sendable () -> String?) {
            guard let url = URL(string: gateway), url.scheme == "https", url.host != nil,
                url.path.isEmpty, url.query == nil
            else { return nil }
            self.gateway = gateway
            self.bearerToken = bearerToken
        }

        /// Returns redirects to the caller instead of following them: a token must not reach
        /// another host.
        public func urlSession(
            _ session: URLSession, task: URLSessionTask,
            willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
        ) async -> URLRequest? { nil }

        /// Sends a request and reads its whole response.
        ///
        /// - Throws: ``ConnectionError``; `tooLarge` when the response exceeds the request's limit.
        public func send(
            _ request: GatewayRequest
        ) async throws(ConnectionError) -> GatewayResponse {
            let stream = try await stream(request)
            var body: [UInt8] = []
            for try await piece in stream.body {
                guard body.count + piece.count <= request.responseBytesMax else {
                    throw ConnectionError(.tooLarge, "the response is too long")
                }
                body += piece
            }
            return GatewayResponse(head: stream.head, body: body)
        }

        /// Sends a request and returns as soon as the head of its response has arrived.
        ///
        /// - Throws: ``ConnectionError``.
        public func stream(
            _ request: GatewayRequest
        ) async throws(ConnectionError) -> GatewayStream {
            guard let url = URL(string: gateway + request.target) else {
                throw ConnectionError(.badRequest, "the request's target is not valid in a URL")
            }
            var order = URLRequest(url: url, timeoutInterval: Self.silenceMax)
            order.httpMethod = request.method
            order.httpBody = request.body.map { Data($0) }
            for (name, value) in request.headers { order.setValue(value, forHTTPHeaderField: name) }
            if let token = bearerToken() {
                order.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
            }
            do {
                let (bytes, response) = try await session.bytes(for: order, delegate: self)
                guard let answer = response as? HTTPURLResponse else {
                    throw URLError(.badServerResponse)
                }
                let fields = answer.allHeaderFields.compactMap { name, value in
                    (name as? String).map { (name: $0, value: "\(value)") }
                }
                let pieces = Pieces(bytes)
                return GatewayStream(
                    head: GatewayResponseHead(status: answer.statusCode, headers: fields),
                    body: GatewayBody { () async throws(ConnectionError) in
                        try await pieces.next()
                    })
            } catch {
                throw ConnectionError(error)
            }
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
                    .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot:
                    .notTrusted
                case .timedOut: .timedOut
                case .cancelled: .cancelled
                default: error is CancellationError ? .cancelled : .broken
                }
            // Never includes the error's own text, which may contain the request's URL.
            self.init(code, "the request failed with \((error as NSError).code)")
        }
    }
#endif
