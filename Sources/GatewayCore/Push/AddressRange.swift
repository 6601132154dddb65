/// Addresses that begin with the same bits.
package struct AddressRange: Sendable, Hashable {
    /// The first of them.
    package let first: IPAddress
    /// How many bits they share.
    package let prefixLength: Int

    /// The addresses that share the first `prefixLength` bits of `first`; `nil` when a further bit
    /// of it is set, or it has not so many.
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

    /// A range such as `10.0.0.0/8` or `fd00::/8`, or one address.
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

    /// Whether `address` is one of them. An address of version 4 is never one of version 6.
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
    /// "10.0.0.0/8".
    package var description: String { "\(first)/\(prefixLength)" }
}
