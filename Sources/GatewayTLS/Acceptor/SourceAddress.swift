import Glibc
import NIOCore

/// The part of a peer's address that tells peers apart for limits: an IPv4 address, or the first 64
/// bits of an IPv6 address, because a provider gives one customer all of a /64.
package struct SourceAddress: Hashable, Sendable {
    private enum Family: UInt8 {
        case ipv4
        case ipv6
        /// Not an Internet address, or unknown.
        case other
    }

    private let family: Family
    private let network: UInt64

    private init(_ family: Family, _ network: UInt64) {
        (self.family, self.network) = (family, network)
    }

    /// An unknown address.
    package static let unknown = SourceAddress(.other, 0)

    /// The address of a channel's peer; `nil` if it is not an Internet address.
    package init?(_ address: SocketAddress?) {
        switch address {
        case .v4?, .v6?:
            let address = address?.withSockAddr {
                SourceAddress(UnsafeRawBufferPointer(start: $0, count: $1))
            }
            self = address ?? .unknown
        case .unixDomainSocket?, nil: return nil
        }
    }

    /// The address in the bytes of a `sockaddr`.
    init(_ address: UnsafeRawBufferPointer) {
        self = Self.read(address) ?? .unknown
    }

    private static func read(_ address: UnsafeRawBufferPointer) -> SourceAddress? {
        func field(_ offset: Int, _ count: Int) -> UInt64? {
            guard address.count >= offset + count else { return nil }
            return address[offset..<offset + count].reduce(0) { $0 << 8 | UInt64($1) }
        }
        guard address.count >= MemoryLayout<sa_family_t>.size else { return nil }
        switch Int32(address.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET: return field(4, 4).map { SourceAddress(.ipv4, $0) }
        case AF_INET6:
            guard let high = field(8, 8), let low = field(16, 8) else { return nil }
            // RFC 4291 section 2.5.5.2: an IPv4 address as an IPv6 socket sees it.
            let isMapped = high == 0 && low >> 32 == 0xFFFF
            return isMapped ? SourceAddress(.ipv4, low & 0xFFFF_FFFF) : SourceAddress(.ipv6, high)
        default: return nil
        }
    }
}
