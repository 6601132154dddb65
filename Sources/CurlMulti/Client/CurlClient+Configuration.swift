extension CurlClient {
    /// Limits and options of a client.
    package struct Configuration: Sendable {
        /// The name of the thread; the first 15 bytes of it are used.
        package var name: String
        /// The certificates to trust.
        package var trust = CurlTrust.system
        /// The certificate for peers that ask for one, and its key, both in PEM.
        package var identity: (certificate: [UInt8], key: [UInt8])?
        /// Whether origins may be `http://`, without encryption and without certificates.
        package var allowsPlainText = false
        /// Whether HTTP/2 is offered; otherwise requests use HTTP/1.1.
        package var speaksHTTP2 = true
        /// Whether a request waits for a connection that is being opened, to share it by HTTP/2.
        package var waitsToShare = true
        /// Whether proxies named in the environment are used. By default requests go to their own
        /// host and nowhere else.
        package var usesEnvironmentProxy = false
        /// Returns the reason why connecting to an address of 4 or 16 bytes is not allowed; `nil`
        /// if it is.
        package var addressRefusal: (@Sendable (_ address: [UInt8]) -> String?)?
        /// Whether libcurl may resend a request on its own, although the peer may have acted on it.
        /// By default a request is sent once at most; it fails where libcurl would resend it, and
        /// the caller decides.
        package var repeatsRequests = false
        /// Whether handles, with their TLS sessions, are kept for later requests.
        package var keepsHandles = true
        /// Whether resolved addresses are cached for a minute. By default each connection has its
        /// own look-up.
        package var keepsAddresses = false
        /// The receive buffer of each socket, in bytes; `nil` for the system's default.
        package var receiveBufferBytes: Int32?

        /// The most requests in flight.
        package var requestsMax = 1_000
        /// The most callers that wait for room.
        package var waitingMax = 10_000
        /// The most connections at a time; 0 for no limit.
        package var connectionsMax = 1
        /// The most connections to one host and port at a time; 0 for no limit.
        package var connectionsPerHostMax = 1
        /// The most concurrent requests on one connection, if the peer allows more.
        package var streamsMax = 1_000
        /// The most bytes in a URL: origin and target.
        package var urlBytesMax = 4_096
        /// The most bytes in a request's body.
        package var bodyBytesMax = 1 << 20

        /// The longest wait for a connection, including TLS.
        package var connectTimeout: Duration = .seconds(15)
        /// The time without use after which a connection is not used again.
        package var idleMax: Duration = .seconds(4 * 3_600)
        /// The age at which a connection is no longer used for new requests.
        package var lifetimeMax: Duration = .seconds(24 * 3_600)
        /// The idle time after which TCP probes a connection, and the interval of further probes.
        package var keepAlive: Duration = .seconds(600)

        /// Creates a configuration with the defaults, for one connection.
        package init(name: String) {
            self.name = name
        }
    }
}
