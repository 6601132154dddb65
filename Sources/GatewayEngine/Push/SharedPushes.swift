import GatewayCore
import GatewayPush

/// The place where nodes keep the pushes to the clients that they share.
package protocol SharedPushes: Sendable {
    /// Whether this node may push now: no other node has taken its clients over.
    var mayPush: Bool { get }

    /// Stores progress with the next flush; of no partition that is lost.
    func store(_ rows: [PushProgressRow])

    /// Records that nothing is owed to the clients of a partition up to a position but what their
    /// stored progress says.
    func store(clear position: UInt64, of partition: PushPartitions.ID)

    /// Hands a partition over; its last rows were stored.
    func settle(_ partition: PushPartitions.ID)

    /// Stores what clients did at this node, for the nodes that push to them.
    func store(_ contacts: [ClientKey: ClientContact])

    /// Reads the knowledge of all nodes about clients, at most ``PushLoop/evidenceMax``.
    ///
    /// - Parameter complete: Called once, on any thread, with `nil` if it cannot be read now;
    ///   clients that no node knows of are missing.
    func readEvidence(
        of clients: [ClientKey],
        complete: @escaping @Sendable ([ClientKey: PushScheduler.Evidence]?) -> Void)
}

/// The progress of a client that is pushed to.
package struct PushProgressRow: Sendable {
    /// The partition that the client is in.
    package let partition: PushPartitions.ID
    package let key: ClientKey
    /// The sequence up to which it was told everything.
    package let progress: PushScheduler.Progress
    /// The state of its pushes.
    package let saved: PushScheduler.SavedClient
}

/// The contact of a client with a node.
package struct ClientContact: Sendable, Equatable {
    /// Whether a stream of the client is open.
    package var isStreaming: Bool
    /// The highest cursor that it acknowledged, or resumed a stream with; 0 for none.
    package var confirmed: UInt64
}

/// The contacts of the clients that a node serves and that are pushed to, by this or another node.
struct ClientContacts {
    private var changed: [ClientKey: ClientContact] = [:]

    mutating func note(_ key: ClientKey, isStreaming: Bool, confirmed cursor: UInt64 = 0) {
        changed[key] = ClientContact(
            isStreaming: isStreaming, confirmed: max(cursor, changed[key]?.confirmed ?? 0))
    }

    /// Returns the contacts that changed since the last call.
    mutating func takeChanged() -> [ClientKey: ClientContact] {
        defer { changed = [:] }
        return changed
    }
}
