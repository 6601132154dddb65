extension CurlClient {
    /// Limits and options of a client.
    package struct Configuration: Sendable {
        /// Names the thread, up to 15 bytes of it.
        package var name: String
        /// PEM file of the only certificates to trust, read for each connection; `nil` trusts the
        /// system's.
        package var caFile: String?
        /// Whether origins may be `http://`, where nothing is encrypted and nobody certified.
        package var allowsPlainText = false
        /// Whether HTTP/2 is offered. Without it requests speak HTTP/1.1.
        package var speaksHTTP2 = true
        /// Whether proxies that the environment names are used. By default, requests go where they
        /// say and nowhere else.
        package var usesEnvironmentProxy = false
        /// Returns why an address of 4 or 16 bytes may not be connected to; `nil` if it may.
        package var addressRefusal: (@Sendable (_ address: [UInt8]) -> String?)?
        /// Whether libcurl may send a request again by itself, though the peer may have acted on it.
        /// By default a request is sent once at most, fails where libcurl would repeat it, and the
        /// caller decides.
        package var repeatsRequests = false
        /// Whether handles are kept for later requests, and with them TLS sessions to resume.
        package var keepsHandles = true
        /// Whether addresses are kept for a minute. By default every connection is opened after a
        /// look-up of its own.
        package var keepsAddresses = false
        /// Receive buffer of each socket; `nil` for the system's.
        package var receiveBufferBytes: Int32?

        /// Limit of requests in flight at once.
        package var requestsMax = 1_000
        /// Limit of callers that wait for room.
        package var waitingMax = 10_000
        /// Limit of connections at once; 0 for none.
        package var connectionsMax = 1
        /// Limit of connections to one host and port at once; 0 for none.
        package var connectionsPerHostMax = 1
        /// Limit of requests at once over one connection, where the peer allows more.
        package var streamsMax = 1_000
        /// Limit of a URL: origin and target.
        package var urlBytesMax = 4_096
        /// Limit of a request's body.
        package var bodyBytesMax = 1 << 20

        /// Longest wait for a connection, TLS included.
        package var connectTimeout: Duration = .seconds(15)
        /// A connection that nothing used for so long is not used again.
        package var idleMax: Duration = .seconds(4 * 3_600)
        /// A connection that was open for so long is not used again.
        package var lifetimeMax: Duration = .seconds(24 * 3_600)
        /// An idle connection is probed by TCP after this time, and then as often.
        package var keepAlive: Duration = .seconds(600)

        /// Creates a configuration with the defaults, for one connection.
        package init(name: String) {
            self.name = name
        }
    }
}
