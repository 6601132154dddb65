import Glibc

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

    package static let unknown = SourceAddress(.other, 0)

    /// The address whose four or sixteen bytes in network order these are; unknown for any other
    /// count.
    package init(ip bytes: some Collection<UInt8>) {
        func number(_ bytes: some Sequence<UInt8>) -> UInt64 {
            bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        switch bytes.count {
        case 4: self.init(.ipv4, number(bytes))
        case 16:
            let (high, low) = (number(bytes.prefix(8)), number(bytes.dropFirst(8)))
            // RFC 4291 section 2.5.5.2: an IPv4 address as an IPv6 socket sees it.
            let isMapped = high == 0 && low >> 32 == 0xFFFF
            self = isMapped ? Self(.ipv4, low & 0xFFFF_FFFF) : Self(.ipv6, high)
        default: self = .unknown
        }
    }

    /// The address in the bytes of a `sockaddr`.
    init(_ address: UnsafeRawBufferPointer) { self.init(ip: Self.ip(in: address)) }

    /// Returns the bytes of the IP address in those of a `sockaddr`; none if it has another family.
    static func ip(in address: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        func field(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
            guard address.count >= offset + count else { return none }
            return UnsafeRawBufferPointer(rebasing: address[offset..<offset + count])
        }
        guard address.count >= MemoryLayout<sa_family_t>.size else { return none }
        return switch Int32(address.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET: field(4, 4)
        case AF_INET6: field(8, 16)
        default: none
        }
    }
}

extension SourceAddress: CustomStringConvertible {
    /// The address as text: an IPv4 address, or the /64 network of an IPv6 address (RFC 5952 but
    /// for the compression of zeros).
    package var description: String {
        switch family {
        case .ipv4: (0..<4).map { "\(network >> (24 - 8 * $0) & 0xFF)" }.joined(separator: ".")
        case .ipv6:
            (0..<4).map { String(network >> (48 - 16 * $0) & 0xFFFF, radix: 16) }
                .joined(separator: ":") + "::/64"
        case .other: "unknown"
        }
    }
}
