/// The far end of a connection.
package struct TLSPeer: Sendable, Equatable {
    /// The address that limits and logs count the connection by: that of the peer's socket, or of the
    /// client that a trusted proxy stated for the connection.
    package internal(set) var address: SourceAddress
    /// The protocol by which the peer states the addresses of its clients; `nil` if it is not a
    /// trusted proxy.
    package let proxyProtocol: ProxyProtocol?

    init(_ address: SourceAddress, _ proxyProtocol: ProxyProtocol? = nil) {
        (self.address, self.proxyProtocol) = (address, proxyProtocol)
    }
}

/// The way in which a trusted proxy states the addresses of its clients.
package enum ProxyProtocol: String, CaseIterable, Sendable {
    /// Each connection begins with a header of the PROXY protocol, version 2.
    case proxyV2
    /// Each request has a field `Forwarded` (RFC 7239).
    case forwarded
}
