/// Decides the rotation of secrets from the table and the server's time. The server refuses the
/// second of two nodes that decide the same.
package struct SecretRotation: Sendable, Equatable {
    /// A secret to add.
    package struct Addition: Sendable, Equatable {
        package let kind: SecretKind
        /// The name of the kind's newest secret; `nil` if it has none.
        package let newest: String?
        /// The seconds from now to its first use.
        package let lead: Int64
        /// The number of secrets of the kind that stay valid, this one included.
        package let kept: Int64
        /// The seconds that an older one stays valid after the first use of this one.
        package let grace: Int64
    }

    /// The secrets to add.
    package let additions: [Addition]
    /// Whether the table has secrets that ended.
    package let hasEnded: Bool

    /// Decides.
    ///
    /// - Parameter now: The server's time, in seconds since 1970.
    package init(
        _ rows: [SecretRow], at now: Int64, kinds: [SecretKind] = SecretKind.allCases,
        timing: SecretTiming
    ) {
        additions = kinds.compactMap { kind in
            let rule = timing.rule(of: kind)
            guard
                let newest = rows.filter({ $0.kind == kind.rawValue })
                    .max(by: { $0.notBefore < $1.notBefore })
            else {
                // The first one is used at once: a node is not ready without it, so nobody has been
                // served without it.
                return Addition(
                    kind: kind, newest: nil, lead: 0, kept: rule?.kept ?? 1,
                    grace: rule?.grace ?? 0)
            }
            // One that has not begun is the replacement already.
            guard let rule, newest.notBefore <= now,
                now - newest.notBefore >= rule.period - rule.lead
            else { return nil }
            return Addition(
                kind: kind, newest: newest.name, lead: rule.lead, kept: rule.kept,
                grace: rule.grace)
        }
        hasEnded = rows.contains { row in row.notAfter.map { $0 <= now } ?? false }
    }
}
