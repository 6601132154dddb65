/// Which addresses the gateway may be sent to by someone who names a URL.
///
/// Whoever registers a webhook chooses where the gateway connects to, from a network that often
/// trusts it. Only addresses of the public Internet are asked, and those an operator allows.
package struct AddressGuard: Sendable, Hashable {
    /// Why an address is not asked.
    package enum Refusal: String, Sendable, CaseIterable {
        /// No host's address.
        case unspecified
        /// This machine.
        case loopback
        /// A network of its owner's (RFC 1918, RFC 4193).
        case privateUse = "private-use"
        /// Behind a carrier's translator (RFC 6598).
        case shared
        /// This link only, where clouds answer with credentials.
        case linkLocal = "link-local"
        /// A cloud answers there for its own machines.
        case metadata
        /// Many hosts at once.
        case multicast
        /// Examples in documents.
        case documentation
        /// Measurements between two networks.
        case benchmarking
        /// Anything else that is no host's of the public Internet.
        case reserved
    }

    /// Ranges that are asked whatever this type knows of them.
    package let allowed: [AddressRange]

    /// A guard that lets the public Internet pass, and `allowed`.
    package init(allowed: [AddressRange] = []) {
        self.allowed = allowed
    }

    /// Why `address` is not asked; `nil` when it may be.
    ///
    /// An address of version 6 that stands for one of version 4 is judged as that one.
    package func refusal(of address: IPAddress) -> Refusal? {
        if allowed.contains(where: { $0.contains(address) }) { return nil }
        if let embedded = address.embedded { return refusal(of: embedded) }
        if let known = Self.special.first(where: { $0.range.contains(address) }) {
            return known.refusal
        }
        return switch address {
        case .v4: nil
        case .v6: Self.isGlobalUnicast(address) ? nil : .reserved
        }
    }

    /// All that was given to hosts so far (RFC 4291 section 2.4).
    private static func isGlobalUnicast(_ address: IPAddress) -> Bool {
        address.bytes.first.map { $0 >> 5 == 1 } ?? false
    }

    /// The ranges of the IANA registries of special-purpose addresses that are not globally
    /// reachable, and where clouds answer; the narrower range first.
    private static let special: [(range: AddressRange, refusal: Refusal)] = [
        ("0.0.0.0", .unspecified), ("0.0.0.0/8", .reserved), ("10.0.0.0/8", .privateUse),
        ("100.100.100.200", .metadata), ("100.64.0.0/10", .shared), ("127.0.0.0/8", .loopback),
        ("168.63.129.16", .metadata), ("169.254.169.254", .metadata),
        ("169.254.0.0/16", .linkLocal), ("172.16.0.0/12", .privateUse),
        ("192.0.2.0/24", .documentation), ("192.0.0.192", .metadata), ("192.0.0.0/24", .reserved),
        ("192.88.99.0/24", .reserved), ("192.168.0.0/16", .privateUse),
        ("198.18.0.0/15", .benchmarking), ("198.51.100.0/24", .documentation),
        ("203.0.113.0/24", .documentation), ("224.0.0.0/4", .multicast),
        ("240.0.0.0/4", .reserved),

        ("::", .unspecified), ("::1", .loopback), ("2001:2::/48", .benchmarking),
        ("2001:db8::/32", .documentation), ("2001::/23", .reserved), ("3fff::/20", .documentation),
        ("fd00:ec2::254", .metadata), ("fc00::/7", .privateUse), ("fe80::/10", .linkLocal),
        ("ff00::/8", .multicast),
    ].compactMap { text, refusal in AddressRange(text).map { ($0, refusal) } }

    /// How many ranges are known, which a test holds against the table.
    static let specialCount = special.count
}
