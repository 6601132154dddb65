/// A client within its partition, in the order in which the server has them.
package struct ClientName: Sendable, Hashable {
    package let app: String
    /// Its identifier in the app.
    package let client: String

    package init(app: String, client: String) {
        self.app = app
        self.client = client
    }
}

/// A client with the number of its partition.
package struct PartitionedClient: Sendable, Hashable {
    /// The number of its partition.
    package let part: Int32
    package let name: ClientName

    package init(part: Int32, name: ClientName) {
        self.part = part
        self.name = name
    }
}

/// The push state of a client, as its owner stores it.
package struct PushStateRow: Sendable, Equatable {
    package let name: ClientName
    /// The sequence up to which it was told; never falls.
    package let told: Int64
    /// Whether something above ``told`` is owed to it. If not, it counts as told up to the sequence
    /// that is clear for its partition.
    package let isOwed: Bool
    /// Budget and retries, in the owner's format.
    package let payload: [UInt8]

    package init(name: ClientName, told: Int64, isOwed: Bool, payload: [UInt8]) {
        self.name = name
        self.told = told
        self.isOwed = isOwed
        self.payload = payload
    }
}

/// A registration, as a partition is loaded with it.
package struct PartitionRegistration: Sendable, Equatable {
    package let name: ClientName
    /// The hashes of the push tokens that still belong to the client.
    package let ownTokens: Set<UInt128>
    /// The registration, in the store's format.
    package let payload: [UInt8]
}

/// Rows of a partition that is being loaded, of one snapshot of the database.
package struct PartitionPortion: Sendable, Equatable {
    /// The rows of one of the two tables.
    package enum Rows: Sendable, Equatable {
        case registrations([PartitionRegistration])
        /// Push state, and the sequence up to which clients to whom nothing is owed count as told.
        case states([PushStateRow], clear: Int64)
    }

    package let partition: Partition
    /// The head of the log in that snapshot: records above it are not in the rows.
    package let asOf: Int64
    package let rows: Rows
}
