/// The history that earlier catalogs left to the one in force. From the catalog alone every kind and
/// rule would look new, and changes owed by retired rules would be forgotten.
package struct RuleSetHistory: Sendable, Equatable {
    /// A rule by its content.
    package struct Entry: Sendable, Equatable {
        /// ``Rule/identity``.
        package let identity: [UInt8]
        /// The sequence of the catalog that first declared it, without interruption since.
        package let since: UInt64

        package init(identity: [UInt8], since: UInt64) {
            self.identity = identity
            self.since = since
        }
    }

    /// The sequence of the entry that put the catalog in force.
    package var sequence: UInt64
    /// The sequence at which each kind was first declared, without interruption since.
    package var kinds: [String: UInt64]
    /// The rules in force, in the order of their slots.
    package var rules: [Entry]
    /// The retired rules, in the order of their slots.
    package var retired: [Entry]

    package init(sequence: UInt64, kinds: [String: UInt64], rules: [Entry], retired: [Entry]) {
        self.sequence = sequence
        self.kinds = kinds
        self.rules = rules
        self.retired = retired
    }
}
