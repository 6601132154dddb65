/// How a gateway shares its log with other nodes.
package struct ClusterSettings: Sendable, Equatable {
    /// The promise of a 202.
    package enum Durability: String, Sendable, CaseIterable {
        /// The change is flushed on the primary and on a standby.
        case quorum
        /// The change is flushed on the primary.
        case primary
    }

    /// The servers, with the login of the node.
    package let url: String
    /// The file of the key of the shared secrets.
    package let key: String
    package let durability: Durability
    /// The host and port at which other nodes reach this one.
    package let node: Address
}
