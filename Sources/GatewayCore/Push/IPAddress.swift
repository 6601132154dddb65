import CPrefetch

package enum IPAddress: Sendable, Hashable {
    /// An IPv4 address, its first byte the most significant.
    case v4(UInt32)
    /// An IPv6 address, its first byte the most significant.
    case v6(UInt128)

    /// Creates an address from its bytes in network order, four or sixteen.
    package init?(bytes: some Collection<UInt8>) {
        switch bytes.count {
        case 4: self = .v4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
        case 16: self = .v6(bytes.reduce(0) { $0 << 8 | UInt128($1) })
        default: return nil
        }
    }

    /// The bytes in network order, four or sixteen.
    package var bytes: [UInt8] {
        switch self {
        case .v4(let bits): (0..<4).map { UInt8(truncatingIfNeeded: bits >> (24 - 8 * $0)) }
        case .v6(let bits): (0..<16).map { UInt8(truncatingIfNeeded: bits >> (120 - 8 * $0)) }
        }
    }

    /// The IPv4 address embedded in an IPv6 address, if any: the host itself uses IPv4 (RFC 4291
    /// section 2.5.5.2), or a translator (RFC 6052) or relay (RFC 3056) converts it.
    package var embedded: IPAddress? {
        guard case .v6(let bits) = self else { return nil }
        let low = UInt32(truncatingIfNeeded: bits)
        if bits >> 32 == 0xFFFF || bits >> 32 == 0x64_FF9B << 64 { return .v4(low) }
        guard bits >> 112 == 0x2002 else { return nil }
        return .v4(UInt32(truncatingIfNeeded: bits >> 80))
    }
}

// MARK: Text

extension IPAddress {
    /// Parses the text form of an address: four decimal numbers without leading zeros, or RFC 4291
    /// section 2.2 without a zone. Rejects other forms that `inet_aton` accepts.
    package init?(_ text: some StringProtocol) {
        let text = String(text)
        // For C a text ends at the first zero.
        guard !text.utf8.contains(0) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16)
        if gateway_read_ipv4(text, &bytes) == 1 {
            self.init(bytes: bytes.prefix(4))
        } else if gateway_read_ipv6(text, &bytes) == 1 {
            self.init(bytes: bytes)
        } else {
            return nil
        }
    }
}

extension IPAddress: CustomStringConvertible {
    /// The text form recommended by RFC 5952: lower case, the longest run of zeros compressed.
    package var description: String {
        switch self {
        case .v4:
            return bytes.map { String($0) }.joined(separator: ".")
        case .v6(let bits):
            if bits >> 32 == 0xFFFF {
                return "::ffff:\(IPAddress.v4(UInt32(truncatingIfNeeded: bits)))"
            }
            let groups = (0..<8).map { UInt16(truncatingIfNeeded: bits >> (112 - 16 * $0)) }
            var longest = 0..<0
            var start = 0
            for (index, group) in groups.enumerated() {
                if group != 0 { start = index + 1 }
                if index + 1 - start > max(1, longest.count) { longest = start..<index + 1 }
            }
            func text(_ groups: ArraySlice<UInt16>) -> String {
                groups.map { String($0, radix: 16) }.joined(separator: ":")
            }
            if longest.isEmpty { return text(groups[...]) }
            return text(groups[..<longest.lowerBound]) + "::" + text(groups[longest.upperBound...])
        }
    }
}
