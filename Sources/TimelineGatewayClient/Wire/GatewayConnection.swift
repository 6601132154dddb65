/// An HTTP connection to a gateway: the client's requirements of an HTTP library.
///
/// The duties of an implementation (`CurlConnection` on Linux, `URLSessionConnection` on Apple's
/// systems):
/// - Requests go to the one gateway it was made for, over TLS with its certificate verified, with
///   the caller's bearer token. Redirects are returned as responses, never followed: a token must
///   not reach another host.
/// - Every call ends: connecting and requests have timeouts, and a stream that is silent for longer
///   than three heartbeats (45 s) ends with ``ConnectionError/Code/silent``.
/// - Cancelling the calling task, or releasing a stream, ends the exchange and frees its resources.
/// - Data that the caller has not consumed is buffered only up to a fixed limit; beyond it nothing
///   more is read from the peer.
/// - Calls may be made concurrently from any task.
///
/// A status is never an error here: 404 or 503 are returned like any other response.
public protocol GatewayConnection: Sendable {
    /// Sends a request and reads its whole response.
    ///
    /// - Throws: ``ConnectionError``; `tooLarge` when the response's body exceeds the request's
    ///   limit.
    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse

    /// Sends a request and returns as soon as the head of its response has arrived.
    ///
    /// - Throws: ``ConnectionError``. Later failures are thrown by the body.
    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream
}

extension GatewayConnection {
    /// Returns a gateway's origin without a slash at its end; `nil` unless it is an `https` origin,
    /// such as `https://gateway.example.com:8443` or `https://gateway.example.com/`.
    package static func origin(_ gateway: String, scheme: String = "https") -> String? {
        var origin = gateway[...]
        while origin.hasSuffix("/") { origin.removeLast() }
        let host = origin.dropFirst(scheme.count + 3)
        guard origin.lowercased().hasPrefix(scheme + "://"), !host.isEmpty,
            host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            !host.contains(where: { "/?#@\\".contains($0) })
        else { return nil }
        return String(origin)
    }
}

/// A request to the gateway.
public struct GatewayRequest: Sendable {
    /// The default limit of a response's body, bytes.
    public static let responseBytesMax = 1024 * 1024

    /// The method, such as `GET` or `PUT`.
    public var method: String
    /// The path and query, percent-encoded; begins with `/`.
    public var target: String
    /// The header fields besides those that the connection adds; without line breaks.
    public var headers: [(name: String, value: String)]
    /// The body; `nil` for none.
    public var body: [UInt8]?
    /// The limit of the response's body, bytes.
    public var responseBytesMax: Int

    /// Creates a request.
    public init(
        method: String = "GET", target: String, headers: [(name: String, value: String)] = [],
        body: [UInt8]? = nil, responseBytesMax: Int = GatewayRequest.responseBytesMax
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.responseBytesMax = responseBytesMax
    }
}

/// The head of a response.
public struct GatewayResponseHead: Sendable {
    /// The HTTP status.
    public let status: Int
    private let fields: [String: String]

    /// Creates a head. If a field name occurs several times, its last value counts.
    public init(status: Int, headers: [(name: String, value: String)]) {
        self.status = status
        var fields: [String: String] = [:]
        for (name, value) in headers { fields[name.lowercased()] = value }
        self.fields = fields
    }

    /// Returns the value of a field, by its name in lower case.
    public subscript(_ name: String) -> String? { fields[name] }
}

/// A response with its whole body.
public struct GatewayResponse: Sendable {
    /// The status and header fields.
    public let head: GatewayResponseHead
    /// The body of the response.
    public let body: [UInt8]

    /// Creates a response.
    public init(head: GatewayResponseHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}

/// A response whose body arrives in pieces.
public struct GatewayStream: Sendable {
    /// The status and header fields.
    public let head: GatewayResponseHead
    /// The body, which can be read once.
    public let body: GatewayBody

    /// Creates a response.
    public init(head: GatewayResponseHead, body: GatewayBody) {
        self.head = head
        self.body = body
    }
}

/// The pieces of a body. Throws ``ConnectionError`` if it breaks off; ends when it is complete.
public struct GatewayBody: AsyncSequence, Sendable {
    private let pull: @Sendable () async throws(ConnectionError) -> [UInt8]?

    /// Creates a body from a function that returns its pieces; the function is never called
    /// concurrently. Its captures are released with the last copy of the body, which ends the
    /// exchange.
    ///
    /// - Parameter next: Returns the next piece, never empty; `nil` at the end; throws if the body
    ///   breaks off.
    public init(next: @escaping @Sendable () async throws(ConnectionError) -> [UInt8]?) {
        pull = next
    }

    /// Returns an iterator over the pieces.
    public func makeAsyncIterator() -> Iterator { Iterator(pull: pull) }

    /// An iterator over the pieces of a body.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pull: @Sendable () async throws(ConnectionError) -> [UInt8]?

        /// Returns the next piece, never empty; `nil` at the end.
        ///
        /// - Throws: ``ConnectionError`` if the body breaks off.
        public mutating func next() async throws(ConnectionError) -> [UInt8]? {
            try await pull()
        }

        /// Returns the next piece on the caller's actor.
        ///
        /// - Throws: ``ConnectionError`` if the body breaks off.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ConnectionError) -> [UInt8]? {
            try await pull()
        }
    }
}
