import WidgetModel

/// A partition of the clients, or a lease of the cluster, as one owner has it: a later owner has a
/// higher generation.
package struct Partition: Sendable, Hashable {
    /// The number of partitions; the numbers from there on are leases.
    static let count: Int32 = 4_096
    /// Every number of a partition or a lease.
    static let numbers = 0..<(count + Int32(ClusterLease.allCases.count))

    package let number: Int32
    /// The generation, which each change of the owner raises.
    package let generation: Int64

    package init(number: Int32, generation: Int64) {
        self.number = number
        self.generation = generation
    }

    /// The lease that this is; `nil` for a partition of clients.
    package var lease: ClusterLease? { ClusterLease(rawValue: number) }
}

/// A task that one node of the cluster does for all.
package enum ClusterLease: Int32, Sendable, CaseIterable {
    /// Writes snapshots.
    case snapshot = 4_096
    /// Drops slices of the log.
    case retention
}

/// The partitions and leases that a node is wanted for, by rendezvous hashing: each node has a weight
/// for each partition, and the heaviest is wanted. A node that comes or goes moves only what it has
/// or will have.
package struct PartitionShare: Sendable {
    /// The numbers that are shared.
    private let all: [Int32]
    private var node: Int32?
    private var nodes: [Int32] = []
    /// The numbers that the node is wanted for.
    private(set) var numbers: Set<Int32> = []

    /// Creates a share of nothing.
    package init(of all: [Int32] = Array(Partition.numbers)) { self.all = all }

    /// Recomputes the share.
    ///
    /// - Parameters:
    ///   - node: The node; `nil` if it wants nothing.
    ///   - nodes: All nodes that want partitions.
    mutating func update(of node: Int32?, among nodes: [Int32]) {
        guard node != self.node || nodes != self.nodes else { return }
        (self.node, self.nodes) = (node, nodes)
        guard let node, nodes.contains(node) else {
            numbers = []
            return
        }
        numbers = Set(all.filter { Self.owner(of: $0, among: nodes) == node })
    }

    /// Returns the node that is wanted for a partition; `nil` without nodes.
    static func owner(of number: Int32, among nodes: [Int32]) -> Int32? {
        nodes.max { weight(of: $0, for: number) < weight(of: $1, for: number) }
    }

    /// Returns the weight, with the number of the node for two that are equal. The same on every
    /// node of every version.
    private static func weight(of node: Int32, for number: Int32) -> (UInt64, Int32) {
        var generator = SplitMix64(
            seed: UInt64(UInt32(bitPattern: node)) << 32 | UInt64(UInt32(bitPattern: number)))
        return (generator.next(), node)
    }
}
