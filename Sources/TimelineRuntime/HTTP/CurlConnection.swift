import CurlMulti
import TimelineGatewayClient

/// Connects to a gateway with libcurl: HTTP/2 over TLS where it is offered, HTTP/1.1 otherwise.
///
/// All exchanges of one connection share a thread and a set of sockets. Redirects are never
/// followed, and only `https` is used.
public final class CurlConnection: GatewayConnection {
    /// The settings of a connection.
    public struct Configuration: Sendable {
        /// The gateway's origin, such as `https://gateway.example.com:8443`.
        public var gateway: String
        /// The file of certificates to trust instead of the system's, in PEM.
        public var caFile: String?
        /// Returns the bearer token; called before each request, so that the token can be replaced.
        /// `nil` sends none. The token is sent only to the gateway.
        public var bearerToken: (@Sendable () -> String?)?
        /// The timeout for connecting, including TLS.
        public var connectDeadline: Duration = .seconds(10)
        /// The timeout for a request that is not a stream.
        public var requestDeadline: Duration = .seconds(60)
        /// The longest silence of a stream before it is ended: three heartbeats of 15 s.
        public var silenceMax: Duration = .seconds(45)
        /// The number of bytes of one response to buffer for a slow reader before the peer is
        /// throttled.
        public var bufferBytesMax = 256 * 1024
        /// Whether each stream has its own TLS connection over HTTP/1.1, as if from another device.
        /// Other requests share theirs.
        package var isolatesStreams = false
        /// Whether the origin uses `http`, such as a gateway's admin port on loopback.
        package var speaksPlainHTTP = false

        /// Creates a configuration with default timeouts.
        public init(
            gateway: String, caFile: String? = nil, bearerToken: (@Sendable () -> String?)? = nil
        ) {
            self.gateway = gateway
            self.caFile = caFile
            self.bearerToken = bearerToken
        }
    }

    private let configuration: Configuration
    private let client: CurlClient

    /// Creates a connection. Sends nothing before the first request.
    ///
    /// - Throws: ``ConnectionError``: `badRequest` when the gateway is not an `https` origin,
    ///   `broken` when libcurl is out of memory.
    public init(_ configuration: Configuration) throws(ConnectionError) {
        let scheme = configuration.speaksPlainHTTP ? "http" : "https"
        guard let origin = Self.origin(configuration.gateway, scheme: scheme) else {
            throw ConnectionError(
                .badRequest, "the gateway must be an https origin such as https://host:8443")
        }
        var settings = configuration
        settings.gateway = origin
        self.configuration = settings
        do throws(CurlError) {
            client = try CurlClient(configuration.ofClient)
        } catch {
            throw ConnectionError(error)
        }
    }

    deinit {
        client.close()
    }

    /// Ends every exchange with `cancelled`, and rejects new ones.
    public func close() {
        client.close()
    }

    /// The number of exchanges that hold a libcurl handle; 0 when all have ended.
    package var openExchanges: Int { client.stats.handles }

    /// Sends a request and reads its whole response.
    ///
    /// - Throws: ``ConnectionError``.
    public func send(
        _ request: GatewayRequest
    ) async throws(ConnectionError) -> GatewayResponse {
        do throws(CurlError) {
            var sent = try curlRequest(request)
            sent.timeout = configuration.requestDeadline
            let response = try await client.send(sent, bodyBytesMax: request.responseBytesMax)
            if let failure = response.failure { throw failure }
            return GatewayResponse(head: GatewayResponseHead(response.head), body: response.body)
        } catch {
            throw ConnectionError(error)
        }
    }

    /// Sends a request and returns as soon as the head of its response has arrived.
    ///
    /// - Throws: ``ConnectionError``.
    public func stream(
        _ request: GatewayRequest
    ) async throws(ConnectionError) -> GatewayStream {
        do throws(CurlError) {
            var sent = try curlRequest(request)
            sent.silenceTimeout = configuration.silenceMax
            sent.isIsolated = configuration.isolatesStreams
            let reader = client.stream(sent, bufferBytesMax: configuration.bufferBytesMax)
            let head = try await reader.head()
            let next = { @Sendable () async throws(ConnectionError) -> [UInt8]? in
                do throws(CurlError) {
                    return try await reader.next()
                } catch {
                    throw ConnectionError(error)
                }
            }
            return GatewayStream(head: GatewayResponseHead(head), body: GatewayBody(next: next))
        } catch {
            throw ConnectionError(error)
        }
    }

    private func curlRequest(_ request: GatewayRequest) throws(CurlError) -> CurlRequest {
        var fields = request.headers
        if let token = configuration.bearerToken?() {
            fields.append((name: "authorization", value: "Bearer \(token)"))
        }
        fields.append((name: "user-agent", value: "timeline-client"))
        return CurlRequest(
            request.method, origin: configuration.gateway, target: request.target,
            fields: try CurlFields(fields), body: request.body, timeout: nil)
    }
}

extension CurlConnection.Configuration {
    /// The limits are those of the gateway, and of who uses the connection.
    fileprivate var ofClient: CurlClient.Configuration {
        var client = CurlClient.Configuration(name: "timeline-client")
        client.trust = CurlTrust(file: caFile)
        client.connectTimeout = connectDeadline
        client.allowsPlainText = speaksPlainHTTP
        client.usesEnvironmentProxy = true
        client.repeatsRequests = true
        client.keepsAddresses = true
        // A stream of its own stands for another device, which has no TLS session to resume.
        client.keepsHandles = false
        client.requestsMax = .max
        (client.connectionsMax, client.connectionsPerHostMax, client.streamsMax) = (0, 0, 100)
        (client.urlBytesMax, client.bodyBytesMax) = (.max, .max)
        client.idleMax = .seconds(118)
        return client
    }
}

extension GatewayResponseHead {
    fileprivate init(_ head: CurlHead) {
        self.init(status: head.status, headers: head.fields)
    }
}

extension ConnectionError {
    fileprivate init(_ error: CurlError) {
        let code: Code =
            switch error.code {
            case .closed, .cancelled: .cancelled
            case .badRequest: .badRequest
            case .unresolved: .unresolved
            case .unreachable, .addressNotAllowed: .unreachable
            case .notTrusted: .notTrusted
            case .notSent, .timedOut: .timedOut
            case .silent: .silent
            case .tooLarge: .tooLarge
            case .busy, .noMemory, .notProcessed, .connectionEnded, .streamReset: .broken
            }
        self.init(code, error.message)
    }
}
