/// A range of IP addresses with a common prefix.
package struct AddressRange: Sendable, Hashable {
    package let first: IPAddress
    /// The length of the prefix, bits.
    package let prefixLength: Int

    /// Creates the range of addresses that share the first `prefixLength` bits of `first`; `nil`
    /// when a later bit of it is set, or the prefix is longer than the address.
    package init?(_ first: IPAddress, prefixLength: Int) {
        guard prefixLength >= 0 else { return nil }
        let rest: UInt128
        switch first {
        case .v4(let bits):
            guard prefixLength <= 32 else { return nil }
            rest = UInt128(bits) & Self.ones(32 - prefixLength)
        case .v6(let bits):
            guard prefixLength <= 128 else { return nil }
            rest = bits & Self.ones(128 - prefixLength)
        }
        guard rest == 0 else { return nil }
        self.first = first
        self.prefixLength = prefixLength
    }

    /// Creates a range from a text such as `10.0.0.0/8` or `fd00::/8`, or a single address.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard let address = parts.first.flatMap({ IPAddress($0) }) else { return nil }
        let longest = address.bytes.count * 8
        switch parts.count {
        case 1:
            self.init(address, prefixLength: longest)
        case 2:
            guard (1...3).contains(parts[1].utf8.count),
                parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let length = Int(parts[1])
            else { return nil }
            self.init(address, prefixLength: length)
        default:
            return nil
        }
    }

    /// Returns whether the range contains `address`. An IPv4 address is never in an IPv6 range.
    package func contains(_ address: IPAddress) -> Bool {
        switch (first, address) {
        case (.v4(let first), .v4(let bits)):
            UInt128(first ^ bits) & ~Self.ones(32 - prefixLength) == 0
        case (.v6(let first), .v6(let bits)):
            (first ^ bits) & ~Self.ones(128 - prefixLength) == 0
        case (.v4, .v6), (.v6, .v4):
            false
        }
    }

    private static func ones(_ count: Int) -> UInt128 {
        count == 128 ? .max : 1 << UInt128(count) - 1
    }
}

extension AddressRange: CustomStringConvertible {
    /// The text form, such as "10.0.0.0/8".
    package var description: String { "\(first)/\(prefixLength)" }
}
