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
        if text.utf8.contains(UInt8(ascii: ":")) {
            guard let bits = Self.version6(text) else { return nil }
            self = .v6(bits)
        } else {
            guard let bits = Self.version4(text) else { return nil }
            self = .v4(bits)
        }
    }

    private static func version4(_ text: some StringProtocol) -> UInt32? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bits: UInt32 = 0
        for part in parts {
            let isNumber = part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            guard isNumber, (1...3).contains(part.count),
                part.count == 1 || part.first != UInt8(ascii: "0"),
                let number = UInt8(String(decoding: part, as: UTF8.self))
            else { return nil }
            bits = bits << 8 | UInt32(number)
        }
        return bits
    }

    private static func version6(_ text: some StringProtocol) -> UInt128? {
        let letters = Array(text.utf8)
        let colon = UInt8(ascii: ":")
        let gap = letters.indices.dropLast().first {
            letters[$0] == colon && letters[$0 + 1] == colon
        }
        guard let gap else {
            guard let groups = groups(letters[...]), groups.count == 8 else { return nil }
            return bits(groups)
        }
        // A gap represents at least one group.
        guard let head = groups(letters[..<gap], isEnd: false),
            let tail = groups(letters[(gap + 2)...]), head.count + tail.count <= 7
        else { return nil }
        return bits(
            head + Array(repeating: 0, count: 8 - head.count - tail.count) + tail)
    }

    private static func bits(_ groups: [UInt16]) -> UInt128 {
        groups.reduce(0) { $0 << 16 | UInt128($1) }
    }

    /// Parses the groups between colons; the last two at the end of a text may be in the form of an
    /// IPv4 address.
    private static func groups(_ letters: ArraySlice<UInt8>, isEnd: Bool = true) -> [UInt16]? {
        guard !letters.isEmpty else { return [] }
        let parts = letters.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        var groups: [UInt16] = []
        for (index, part) in parts.enumerated() {
            let text = String(decoding: part, as: UTF8.self)
            if part.contains(UInt8(ascii: ".")) {
                guard isEnd, index == parts.count - 1, let low = version4(text) else { return nil }
                groups += [UInt16(low >> 16), UInt16(truncatingIfNeeded: low)]
            } else {
                guard (1...4).contains(part.count), part.allSatisfy(\.isHexDigit),
                    let group = UInt16(text, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        return groups
    }
}

extension UInt8 {
    fileprivate var isHexDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
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
