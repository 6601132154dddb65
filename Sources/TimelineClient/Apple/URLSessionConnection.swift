// Not compiled by CI, which runs on Linux: kept so short that reading proves it.
#if canImport(Darwin)
    import Foundation

    /// Reaches a gateway with `URLSession`, with the system's trust and its HTTP/2.
    public final class URLSessionConnection: NSObject, GatewayConnection, URLSessionTaskDelegate {
        /// Longest silence on a request or a stream: three heartbeats.
        private static let silenceMax: TimeInterval = 45

        private let gateway: String
        private let bearerToken: @Sendable () -> String?
        private let session = URLSession(configuration: .ephemeral)

        /// A connection.
        ///
        /// - Parameters:
        ///   - gateway: Its origin, such as `https://gateway.example.com:8443`.
        ///   - bearerToken: Asked before each request, so that it can be replaced.
        /// - Returns: `nil` when the gateway is not an `https` origin.
        public init?(gateway: String, bearerToken: @escaping @Sendable () -> String?) {
            guard let url = URL(string: gateway), url.scheme == "https", url.host != nil,
                url.path.isEmpty, url.query == nil
            else { return nil }
            self.gateway = gateway
            self.bearerToken = bearerToken
        }

        /// Redirects are answers: a token must not travel.
        public func urlSession(
            _ session: URLSession, task: URLSessionTask,
            willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
        ) async -> URLRequest? { nil }

        /// Sends a request and reads its whole answer.
        ///
        /// - Throws: ``ConnectionError``.
        public func send(
            _ request: GatewayRequest
        ) async throws(ConnectionError) -> GatewayResponse {
            let stream = try await stream(request)
            var body: [UInt8] = []
            for try await piece in stream.body {
                guard body.count + piece.count <= request.responseBytesMax else {
                    throw ConnectionError(.tooLarge, "the answer is longer than it may be")
                }
                body += piece
            }
            return GatewayResponse(head: stream.head, body: body)
        }

        /// Sends a request and returns as soon as the head of its answer is here.
        ///
        /// - Throws: ``ConnectionError``.
        public func stream(
            _ request: GatewayRequest
        ) async throws(ConnectionError) -> GatewayStream {
            guard let url = URL(string: gateway + request.target) else {
                throw ConnectionError(.badRequest, "the request's target is no part of a URL")
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

        /// Hands out a body by lines, so that an event is not held back for what follows it.
        private actor Pieces {
            private static let bytesMax = 16 * 1024
            private var iterator: URLSession.AsyncBytes.AsyncIterator

            init(_ bytes: URLSession.AsyncBytes) { iterator = bytes.makeAsyncIterator() }

            func next() async throws(ConnectionError) -> [UInt8]? {
                var piece: [UInt8] = []
                // A copy, for an actor's property cannot be borrowed across a suspension; the
                // position is the same, for copies share it, and nobody else reads.
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
        /// What an error of `URLSession` means.
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
            // Never the error's own text: it may have the request's URL in it.
            self.init(code, "the request failed with \((error as NSError).code)")
        }
    }
#endif
