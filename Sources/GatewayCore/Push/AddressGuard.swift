/// Decides which IP addresses the gateway may connect to for a URL from a client.
///
/// Whoever registers a webhook chooses the target of the gateway's connections, which come from a
/// network that is often trusted. Only addresses of the public Internet, and those that an operator
/// allows, are permitted.
package struct AddressGuard: Sendable, Hashable {
    /// The reason why an address is not permitted.
    package enum Rejection: String, Sendable, CaseIterable {
        /// The unspecified address, which identifies no host.
        case unspecified
        /// The local machine.
        case loopback
        /// A private network (RFC 1918, RFC 4193).
        case privateUse = "private-use"
        /// Shared address space behind a carrier's NAT (RFC 6598).
        case shared
        /// Link-local addresses, where clouds provide credentials.
        case linkLocal = "link-local"
        /// The metadata service of a cloud.
        case metadata
        case multicast
        /// Addresses for documentation.
        case documentation
        /// Addresses for benchmarking between two networks.
        case benchmarking
        /// Any other address that is not a host of the public Internet.
        case reserved
    }

    /// The ranges that are permitted regardless of their purpose.
    package let allowed: [AddressRange]

    /// Creates a guard that permits the public Internet and `allowed`.
    package init(allowed: [AddressRange] = []) {
        self.allowed = allowed
    }

    /// Returns the reason why `address` is not permitted; `nil` when it is.
    ///
    /// An IPv6 address that embeds an IPv4 address is treated as the latter.
    package func refusal(of address: IPAddress) -> Rejection? {
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

    /// Returns whether the address is in the range assigned to hosts so far (RFC 4291 section 2.4).
    private static func isGlobalUnicast(_ address: IPAddress) -> Bool {
        address.bytes.first.map { $0 >> 5 == 1 } ?? false
    }

    /// The ranges of the IANA special-purpose address registries that are not globally reachable,
    /// and the cloud metadata services; narrower ranges first.
    private static let special: [(range: AddressRange, refusal: Rejection)] = [
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

    /// The number of known ranges, for a test that compares it with the table.
    static let specialCount = special.count
}
