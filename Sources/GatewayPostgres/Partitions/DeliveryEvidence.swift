/// A node's knowledge of a client that it serves, which the owner of its partition asks for before
/// it pushes.
package struct HeardRow: Sendable, Equatable {
    package let client: PartitionedClient
    /// Whether a stream of the client is open at the node.
    package let isOpen: Bool
    /// The highest cursor that it acknowledged or resumed with.
    package let upTo: Int64

    package init(client: PartitionedClient, isOpen: Bool, upTo: Int64) {
        self.client = client
        self.isOpen = isOpen
        self.upTo = upTo
    }
}

/// The knowledge of all nodes of one client.
package struct DeliveryEvidence: Sendable, Equatable {
    /// The highest cursor that the client acknowledged or resumed with at any node.
    package let upTo: Int64
    /// Whether a stream of the client is open at a node with a valid lease.
    package let isOpen: Bool

    /// No node has heard of the client.
    package static let none = DeliveryEvidence(upTo: .min, isOpen: false)
}

/// The evidence of the node's own clients that is not written yet: the newest of each client.
struct HeardBuffer: Sendable {
    /// The maximum number of clients that wait: with more the evidence of some is dropped, which
    /// can only push beside a stream.
    static let countMax = 100_000

    private var waiting: [PartitionedClient: HeardRow] = [:]
    private(set) var sent: [HeardRow] = []

    /// Whether rows wait to be written.
    var isEmpty: Bool { waiting.isEmpty }

    /// Adds rows.
    mutating func note(_ rows: [HeardRow]) {
        for row in rows {
            let before = waiting[row.client]
            guard before != nil || waiting.count < Self.countMax else { continue }
            waiting[row.client] = HeardRow(
                client: row.client, isOpen: row.isOpen, upTo: max(row.upTo, before?.upTo ?? .min))
        }
    }

    /// Returns the rows to write next, until ``confirm()`` or ``restore()``.
    mutating func nextPortion(countMax: Int) -> [HeardRow] {
        sent = Array(waiting.values.prefix(countMax))
        for row in sent { waiting[row.client] = nil }
        return sent
    }

    /// The rows were written.
    mutating func confirm() { sent = [] }

    /// The rows may not have been written: they wait again, under newer ones.
    mutating func restore() {
        for row in sent {
            let after = waiting[row.client]
            waiting[row.client] = HeardRow(
                client: row.client, isOpen: after?.isOpen ?? row.isOpen,
                upTo: max(row.upTo, after?.upTo ?? .min))
        }
        sent = []
    }
}
