/// A request of the connection that leases partitions. Each is a transaction of its own.
package enum PartitionRequest: Sendable, Equatable {
    /// Reads the version of the schema, the settings and the chain at a position; writes nothing.
    case identify(at: Int64)
    /// Makes this connection the one of the node; see `tg.attach`.
    case attach(process: Int64, isForced: Bool)
    /// Renews the lease; see `tg.renew`.
    case renew(serves: Bool, load: String?)
    /// Reads the settings that decide whether the renewal before is durable.
    case readDurability
    /// Takes partitions that are released or whose owners are dead.
    case take([Int32], silent: [SilentNode])
    case release([Partition])
    /// Writes push state.
    case flush(FlushCall)
    /// Writes what clients confirmed at this node.
    case hear([HeardRow])
    /// Reads the registrations of a partition, behind a client.
    case loadRegistrations(Partition, after: ClientName?)
    /// Reads the push state of a partition, behind a client.
    case loadStates(Partition, after: ClientName?)
    /// Reads what clients confirmed at any node.
    case lookUp([PartitionedClient])
    /// Deletes old evidence of partitions.
    case forgetHeard([Int32])
}

/// A node that has not renewed its lease for a while.
package struct SilentNode: Sendable, Equatable {
    /// Its number.
    package let node: Int32
    /// The count of its renewals.
    package let beat: Int64
}

/// The arguments of `tg.flush`.
package struct FlushCall: Sendable, Equatable {
    /// A partition in a flush.
    package struct Owned: Sendable, Equatable {
        package var partition: Partition
        /// The sequence that is clear from here on; `nil` leaves it.
        package var clear: Int64?
    }

    package struct Row: Sendable, Equatable {
        /// The number of its partition, which is in ``FlushCall/owned``.
        package var part: Int32
        package var state: PushStateRow
    }

    /// The partitions, each once.
    package var owned: [Owned]
    /// The rows, each client once.
    package var rows: [Row]
}

/// The answer to a ``PartitionRequest`` of the same name.
package enum PartitionAnswer: Sendable, Equatable {
    case identified(ServerIdentity)
    case renewed(LeaseRenewal)
    case durability(Durability)
    case taken([Partition])
    /// The numbers of the partitions that were refused.
    case flushed(lost: [Int32])
    /// A portion, and whether more may follow it.
    case loaded(PartitionPortion, isLast: Bool)
    case lookedUp([PartitionedClient: DeliveryEvidence])
    /// The request has ended.
    case done
}

package struct LeaseRenewal: Sendable, Equatable {
    package var node: Int32
    package var owned: [Partition]
    /// The count of the renewals of every node.
    package var beats: [Int32: Int64]
    /// The nodes that want partitions and whose lease runs.
    package var serving: [Int32]
}

extension PartitionRequest {
    /// Whether this renews the lease.
    var isRenewal: Bool { if case .renew = self { true } else { false } }

    /// Whether this takes partitions.
    var isTaking: Bool { if case .take = self { true } else { false } }

    /// Whether this releases partitions.
    var isRelease: Bool { if case .release = self { true } else { false } }

    /// The partition that this reads a portion of.
    var loadedPartition: Partition? {
        switch self {
        case .loadRegistrations(let partition, _), .loadStates(let partition, _): partition
        default: nil
        }
    }
}
