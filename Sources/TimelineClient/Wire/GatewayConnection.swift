/// A gateway reached over HTTP: what the client needs of an HTTP library.
///
/// Duties of an implementation (libcurl in `TimelineClientHTTP`; `URLSession` fulfils them with a
/// data task and `bytes(for:)`):
/// - Requests go to the one gateway it was made for, over TLS with its certificate verified, with
///   the caller's bearer token. Redirects are answers, never followed: a token must not travel.
/// - Every call ends: connecting has a deadline, a request too, and a stream that is silent longer
///   than three heartbeats (45 s) ends with ``ConnectionError/Code/silent``.
/// - Cancelling the calling task, or dropping a stream, ends the exchange and frees what it held.
/// - What the reader does not take is not read from the peer beyond a fixed bound.
/// - Calls may be made at the same time from any task.
///
/// A status is never an error here: 404 or 503 are answers like any other.
public protocol GatewayConnection: Sendable {
    /// Sends a request and reads its whole answer.
    ///
    /// - Throws: ``ConnectionError``; `tooLarge` when the answer's body exceeds the request's
    ///   bound.
    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse

    /// Sends a request and returns as soon as the head of its answer is here.
    ///
    /// - Throws: ``ConnectionError``. What goes wrong later is thrown by the body.
    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream
}

/// A request to the gateway.
public struct GatewayRequest: Sendable, Equatable {
    /// Largest answer read by default, bytes.
    public static let responseBytesMax = 1024 * 1024

    /// `GET`, `PUT`, …
    public var method: String
    /// Path and query, percent-encoded, from the gateway's origin: begins with `/`.
    public var target: String
    /// Fields beside those the connection adds; no line ends.
    public var headers: [(name: String, value: String)]
    /// The body, if there is one.
    public var body: [UInt8]?
    /// Largest answer read, bytes.
    public var responseBytesMax: Int

    /// A request.
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

    /// Whether everything is the same, fields in the same order.
    public static func == (one: GatewayRequest, other: GatewayRequest) -> Bool {
        one.method == other.method && one.target == other.target && one.body == other.body
            && one.responseBytesMax == other.responseBytesMax
            && one.headers.elementsEqual(other.headers) { $0 == $1 }
    }
}

/// The head of an answer.
public struct GatewayResponseHead: Sendable {
    /// The HTTP status.
    public let status: Int
    private let fields: [String: String]

    /// A head; of several fields of one name the last counts.
    public init(status: Int, headers: [(name: String, value: String)]) {
        self.status = status
        var fields: [String: String] = [:]
        for (name, value) in headers { fields[name.lowercased()] = value }
        self.fields = fields
    }

    /// The value of a field, by its name in lower case.
    public subscript(_ name: String) -> String? { fields[name] }
}

/// An answer with its whole body.
public struct GatewayResponse: Sendable {
    /// Status and fields.
    public let head: GatewayResponseHead
    /// The body.
    public let body: [UInt8]

    /// An answer.
    public init(head: GatewayResponseHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}

/// An answer whose body comes in pieces.
public struct GatewayStream: Sendable {
    /// Status and fields.
    public let head: GatewayResponseHead
    /// The body; read once.
    public let body: GatewayBody

    /// An answer.
    public init(head: GatewayResponseHead, body: GatewayBody) {
        self.head = head
        self.body = body
    }
}

/// The pieces of a body. Throws ``ConnectionError`` when it breaks off; ends when it is complete.
public struct GatewayBody: AsyncSequence, Sendable {
    private let pull: @Sendable () async throws(ConnectionError) -> [UInt8]?

    /// A body whose pieces `next` hands out; it is never called twice at once. What `next` holds
    /// is released with the last copy of the body, which ends the exchange.
    ///
    /// - Parameter next: The next piece, never empty; `nil` at the end; throws when it breaks off.
    public init(next: @escaping @Sendable () async throws(ConnectionError) -> [UInt8]?) {
        pull = next
    }

    /// Hands out the pieces.
    public func makeAsyncIterator() -> Iterator { Iterator(pull: pull) }

    /// Hands out the pieces.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let pull: @Sendable () async throws(ConnectionError) -> [UInt8]?

        /// The next piece, never empty; `nil` at the end.
        ///
        /// - Throws: ``ConnectionError`` when the body breaks off.
        public mutating func next() async throws(ConnectionError) -> [UInt8]? {
            try await pull()
        }

        /// The next piece, wherever the caller runs.
        ///
        /// - Throws: ``ConnectionError`` when the body breaks off.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ConnectionError) -> [UInt8]? {
            try await pull()
        }
    }
}
