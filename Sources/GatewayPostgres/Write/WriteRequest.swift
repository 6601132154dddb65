/// A request of the write path. Each is a transaction of its own.
package enum WriteRequest: Sendable, Equatable {
    /// Reads the version of the schema, the settings and the chain at a position; writes nothing.
    case identify(at: Int64)
    /// Takes the node over; see `tg.fence`.
    case fence
    /// Looks for a batch of this node whose outcome is unknown.
    case find(batch: Int64, after: Int64)
    /// Reads the head of the log and, in the same snapshot, what a batch is decided by.
    case probe(Probe)
    case read(RowReading)
    /// Appends a batch and commits.
    case append(AppendCall)
    /// Reads the settings that decide whether the commit before was durable.
    case readDurability(notifies: Bool)
    /// Deletes rows of removed apps, at most as many.
    case deleteRemoved(Int32)
}

/// The answer to a ``WriteRequest`` of the same name.
package enum WriteAnswer: Sendable, Equatable {
    case identified(ServerIdentity)
    case fenced(generation: Int64)
    /// The position of the batch; `nil` if the log does not contain it.
    case found(LogPosition?)
    case probed(ProbeResult)
    case read(RowOutcome)
    case appended(LogPosition)
    case durability(Durability)
    /// Whether there may be more to delete.
    case deleted(hasMore: Bool)
}

/// The facts that a node compares before it believes a server.
package struct ServerIdentity: Sendable, Equatable {
    package var version: Int64
    package var logID: UInt128
    /// The chain at the position that was asked for; `nil` where no batch ends there.
    package var chain: UInt128?
    /// The settings.
    package var durability: Durability
    /// The start time of the server: another one means another server, or the same after a stop.
    package var startedAt: Int64
    /// The server's process of this connection, which its notifications carry.
    package var process: Int32
    /// Whether the login may do more than a node may.
    package var isPrivileged: Bool

    package init(
        version: Int64, logID: UInt128, chain: UInt128?, durability: Durability, startedAt: Int64,
        process: Int32 = 0, isPrivileged: Bool = false
    ) {
        self.version = version
        self.logID = logID
        self.chain = chain
        self.durability = durability
        self.startedAt = startedAt
        self.process = process
        self.isPrivileged = isPrivileged
    }
}
