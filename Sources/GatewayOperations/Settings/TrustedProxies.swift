import GatewayCore
import GatewayTLS

/// The proxies that state the addresses of their clients, and the way in which they do.
package struct TrustedProxies: Sendable, Equatable {
    package let ranges: [AddressRange]
    /// The way in which all of them state the addresses of their clients.
    package let proxyProtocol: ProxyProtocol

    /// Trusts every peer whose address is in one of `ranges`.
    package init(_ ranges: [AddressRange], by proxyProtocol: ProxyProtocol) {
        (self.ranges, self.proxyProtocol) = (ranges, proxyProtocol)
    }

    /// Returns whether an address belongs to a proxy. An IPv4 address as an IPv6 socket sees it (RFC
    /// 4291 section 2.5.5.2) counts as the IPv4 address.
    package func contains(_ address: IPAddress) -> Bool {
        var address = address
        if case .v6(let bits) = address, bits >> 32 == 0xFFFF {
            address = .v4(UInt32(truncatingIfNeeded: bits))
        }
        return ranges.contains { $0.contains(address) }
    }

    /// Returns the protocol of the peer whose IP address has these bytes; `nil` unless it is a proxy.
    package func proxyProtocol(of peer: UnsafeRawBufferPointer) -> ProxyProtocol? {
        guard let address = IPAddress(bytes: peer), contains(address) else { return nil }
        return proxyProtocol
    }
}
