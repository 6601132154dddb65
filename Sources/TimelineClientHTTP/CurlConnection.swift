import CurlMulti
import TimelineClient

/// Reaches a gateway with libcurl: HTTP/2 over TLS where it is offered, HTTP/1.1 otherwise.
///
/// Every exchange of one connection shares one thread and one set of sockets. Redirects are never
/// followed and only `https` is spoken.
public final class CurlConnection: GatewayConnection {
    /// How a gateway is reached.
    public struct Configuration: Sendable {
        /// The gateway's origin, such as `https://gateway.example.com:8443`.
        public var gateway: String
        /// Certificates to trust, in PEM, instead of the system's.
        public var caFile: String?
        /// Asked for the bearer token before each request, so that it can be replaced; `nil` sends
        /// none. It goes to the gateway and nowhere else.
        public var bearerToken: (@Sendable () -> String?)?
        /// Longest wait for a connection, TLS included.
        public var connectDeadline: Duration = .seconds(10)
        /// Longest time a request takes that is not a stream.
        public var requestDeadline: Duration = .seconds(60)
        /// A stream silent for longer is given up: three heartbeats of 15 s.
        public var silenceMax: Duration = .seconds(45)
        /// Bytes of one answer kept for a slow reader, before the peer is made to wait.
        public var bufferBytesMax = 256 * 1024
        /// Each stream has a TLS connection of its own, over HTTP/1.1, as if it were another
        /// device's; requests share theirs.
        package var isolatesStreams = false
        /// The origin is one of `http`, such as a gateway's admin port on loopback.
        package var speaksPlainHTTP = false

        /// A configuration with the usual deadlines.
        public init(
            gateway: String, caFile: String? = nil, bearerToken: (@Sendable () -> String?)? = nil
        ) {
            self.gateway = gateway
            self.caFile = caFile
            self.bearerToken = bearerToken
        }
    }

    private let configuration: Configuration
    private let count = TransferDriver.Count()
    private let loop: CurlLoop<TransferDriver>

    /// A connection; nothing is sent before the first request.
    ///
    /// - Throws: ``TimelineClient/ConnectionError``: `badRequest` when the gateway is not an
    ///   `https` origin, `broken` when libcurl has no memory.
    public init(_ configuration: Configuration) throws(ConnectionError) {
        var configuration = configuration
        while configuration.gateway.hasSuffix("/") { configuration.gateway.removeLast() }
        let prefix = configuration.speaksPlainHTTP ? "http://" : "https://"
        let rest = configuration.gateway.dropFirst(prefix.count)
        guard configuration.gateway.lowercased().hasPrefix(prefix), !rest.isEmpty,
            rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            !rest.contains(where: { "/?#@\\".contains($0) })
        else {
            throw ConnectionError(
                .badRequest, "the gateway must be an https origin such as https://host:8443")
        }
        self.configuration = configuration
        let loop = CurlLoop(name: "timeline-client", corkedMax: 0) { [count] in
            TransferDriver(count)
        }
        guard let loop else { throw ConnectionError(.broken, "libcurl could not be initialised") }
        self.loop = loop
    }

    deinit {
        loop.stop()
    }

    /// Ends every exchange with `cancelled`, and refuses new ones.
    public func close() {
        loop.stop()
    }

    /// Exchanges that hold a handle of libcurl; none when all have ended.
    package var openExchanges: Int { count.openHandles }

    /// Sends a request and reads its whole answer.
    ///
    /// - Throws: ``TimelineClient/ConnectionError``.
    public func send(
        _ request: GatewayRequest
    ) async throws(ConnectionError) -> GatewayResponse {
        let transfer = try start(request, isStream: false)
        let lease = CurlTransfer.Lease(transfer)
        let head = try await lease.transfer.head()
        var body: [UInt8] = []
        while let piece = try await lease.transfer.next() {
            guard body.count + piece.count <= request.responseBytesMax else {
                throw ConnectionError(
                    .tooLarge, "the answer is longer than \(request.responseBytesMax) bytes")
            }
            body += piece
        }
        return GatewayResponse(head: head, body: body)
    }

    /// Sends a request and returns as soon as the head of its answer is here.
    ///
    /// - Throws: ``TimelineClient/ConnectionError``.
    public func stream(
        _ request: GatewayRequest
    ) async throws(ConnectionError) -> GatewayStream {
        let lease = CurlTransfer.Lease(try start(request, isStream: true))
        let head = try await lease.transfer.head()
        let next = { @Sendable () async throws(ConnectionError) -> [UInt8]? in
            try await lease.transfer.next()
        }
        return GatewayStream(head: head, body: GatewayBody(next: next))
    }

    private func start(
        _ request: GatewayRequest, isStream: Bool
    ) throws(ConnectionError) -> CurlTransfer {
        var headers = request.headers
        if let token = configuration.bearerToken?() {
            headers.append((name: "authorization", value: "Bearer \(token)"))
        }
        let isSound = headers.allSatisfy { name, value in
            !name.isEmpty && (name + value).utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        }
        guard isSound, request.target.hasPrefix("/"),
            request.target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw ConnectionError(
                .badRequest, "the request's target, a field or the token has a control character")
        }
        let transfer = CurlTransfer(
            order: CurlTransfer.Order(
                url: configuration.gateway + request.target, method: request.method,
                headers: headers, body: request.body, caFile: configuration.caFile,
                connectDeadline: configuration.connectDeadline,
                totalDeadline: isStream ? nil : configuration.requestDeadline,
                silenceMax: isStream ? configuration.silenceMax : nil,
                isIsolated: isStream && configuration.isolatesStreams,
                isPlain: configuration.speaksPlainHTTP,
                bufferBytesMax: configuration.bufferBytesMax),
            loop: loop)
        guard loop.submit(.start(transfer)) else {
            throw ConnectionError(.cancelled, "the connection is closed")
        }
        return transfer
    }
}
