import Dispatch
import Foundation
import GatewayCore
import GatewayEngine
import GatewayPostgres
import GatewayPush
import GatewayRecords
import Synchronization
import WidgetModel

/// The pushes of a node: to the clients of the partitions that it owns. Their state lies in the
/// database, where a node that takes a partition over finds it.
package final class FleetPushes: SharedPushes {
    /// Removes addresses from a client's registration.
    package typealias Drop = @Sendable (ClientKey, [DeliveryAddress]) -> Void

    private struct State {
        /// The numbers of the partitions of clients that the node owns.
        var owned: Set<Int32> = []
        var partitions: PostgresPartitions?
        var loop: PushLoop?
        var drop: Drop?
    }

    private let state = Mutex(State())
    private let hashes: FleetHashes
    private let seal: RegistrationSeal
    private let onUnreadableRow: FleetFollower.UnreadableRowReport
    /// Reads and writes rows, in order, on neither the thread of the leases nor that of pushes.
    private let rows = DispatchQueue(label: "timeline-gateway.push-rows")

    /// Creates an instance that owns nothing.
    package init(
        _ hashes: FleetHashes, _ seal: RegistrationSeal,
        onUnreadableRow: @escaping FleetFollower.UnreadableRowReport
    ) {
        self.hashes = hashes
        self.seal = seal
        self.onUnreadableRow = onUnreadableRow
    }

    /// Hands events to a loop from here on.
    func use(_ loop: PushLoop?) { state.withLock { $0.loop = loop } }

    /// Stores in the partitions of a node from here on.
    func use(_ partitions: PostgresPartitions?) { state.withLock { $0.partitions = partitions } }

    /// Removes the addresses that other clients have registered since by `drop`.
    package func use(_ drop: @escaping Drop) { state.withLock { $0.drop = drop } }

    private var partitions: PostgresPartitions? { state.withLock { $0.partitions } }

    // MARK: Registrations

    /// Returns whether the node pushes to a client.
    func owns(_ key: RegistrationKey) -> Bool {
        state.withLock { $0.owned.contains(Int32(key.part)) }
    }

    /// Removes the addresses that a client lost to others, if this node pushes to it.
    func drop(_ lost: [DeliveryAddress], of key: RegistrationKey) {
        guard !lost.isEmpty, owns(key), let drop = state.withLock({ $0.drop }) else { return }
        drop(ClientKey(app: key.app, client: key.client), lost)
    }

    // MARK: Partitions

    /// Handles a report about partitions of clients; called on the thread of the leases.
    func receive(_ report: PostgresPartitions.Report) {
        switch report {
        case .ready: submit([.contactsLost])
        case .acquired(let partition):
            // At once: the registrations that come with the log from here on are newer than the rows.
            state.withLock { _ = $0.owned.insert(partition.number) }
            enqueue([.acquired(partition.id)])
        case .portion(let portion):
            rows.async { [self] in submit([.partition(event(portion))]) }
        case .loaded(let partition): enqueue([.loaded(partition.id)])
        case .handOver(let partitions): enqueue(partitions.map { .handOver($0.id) })
        case .lost(let partitions):
            forget(partitions)
            enqueue(partitions.map { .lost($0.id) })
        case .unready, .drained: break
        }
    }

    private func forget(_ partitions: [Partition]) {
        state.withLock { $0.owned.subtract(partitions.map(\.number)) }
    }

    private func enqueue(_ events: [PushPartitions.Event]) {
        rows.async { [self] in submit(events.map { .partition($0) }) }
    }

    private func submit(_ events: [PushLoop.Event]) {
        state.withLock { $0.loop }?.submit(events)
    }

    private func event(_ portion: PartitionPortion) -> PushPartitions.Event {
        let (id, position) = (portion.partition.id, UInt64(clamping: portion.asOf))
        switch portion.rows {
        case .registrations(let found):
            var records: [ClientKey: ClientRecord] = [:]
            for row in found {
                guard let record = record(row, portion.partition) else { continue }
                records[ClientKey(row.name)] = record
            }
            return .registrations(id, records, asOf: position)
        case .states(let found, let clear):
            var progress: [ClientKey: PushPartitions.Progress] = [:]
            for row in found {
                progress[ClientKey(row.name)] = PushPartitions.Progress(
                    saved: try? PushClientPayload.read(Data(row.payload)),
                    told: UInt64(clamping: row.isOwed ? row.told : max(row.told, clear)),
                    clear: UInt64(clamping: clear))
            }
            return .progress(id, progress, asOf: position)
        }
    }

    /// Returns a registration that can be pushed to; `nil` for any other.
    private func record(_ row: PartitionRegistration, _ partition: Partition) -> ClientRecord? {
        let key = RegistrationKey(
            part: Int16(truncatingIfNeeded: partition.number), app: row.name.app,
            client: row.name.client)
        do {
            let opened = try seal.open(row.payload, of: key, tokens: row.ownTokens, hashes)
            drop(opened.lost, of: key)
            let record = opened.stored.record(of: row.name.client)
            return record.isPushable ? record : nil
        } catch {
            onUnreadableRow(key, error)
            return nil
        }
    }

    // MARK: SharedPushes

    package var mayPush: Bool { partitions?.mayPush ?? false }

    package func store(_ progress: [PushProgressRow]) {
        rows.async { [self] in
            for (id, rows) in Dictionary(grouping: progress, by: \.partition) {
                partitions?.note(
                    told: rows.map {
                        PushStateRow(
                            name: ClientName(app: $0.key.app, client: $0.key.client),
                            told: Int64(clamping: $0.progress.told), isOwed: $0.progress.isOwed,
                            payload: Array(PushClientPayload.data($0.saved)))
                    }, of: Partition(id))
            }
        }
    }

    package func store(clear position: UInt64, of id: PushPartitions.ID) {
        rows.async { [self] in
            partitions?.note(clear: Int64(clamping: position), of: Partition(id))
        }
    }

    package func settle(_ id: PushPartitions.ID) {
        rows.async { [self] in
            let partition = Partition(id)
            forget([partition])
            partitions?.settle(partition)
        }
    }

    package func store(_ contacts: [ClientKey: ClientContact]) {
        partitions?.note(
            heard: contacts.map { key, contact in
                HeardRow(
                    client: client(key), isOpen: contact.isStreaming,
                    upTo: Int64(clamping: contact.confirmed))
            })
    }

    package func readEvidence(
        of clients: [ClientKey],
        complete: @escaping @Sendable ([ClientKey: PushScheduler.Evidence]?) -> Void
    ) {
        guard let partitions else { return complete(nil) }
        partitions.lookUp(clients.map(client)) { evidence in
            guard let evidence else { return complete(nil) }
            complete(
                Dictionary(
                    evidence.map { client, known in
                        (
                            ClientKey(client.name),
                            PushScheduler.Evidence(
                                confirmed: UInt64(clamping: known.upTo), isStreaming: known.isOpen)
                        )
                    }
                ) { $1 })
        }
    }

    private func client(_ key: ClientKey) -> PartitionedClient {
        PartitionedClient(
            part: Int32(hashes.key(of: key).part),
            name: ClientName(app: key.app, client: key.client))
    }
}

extension ClientKey {
    fileprivate init(_ name: ClientName) { self.init(app: name.app, client: name.client) }
}

extension Partition {
    fileprivate var id: PushPartitions.ID {
        PushPartitions.ID(number: number, generation: generation)
    }

    fileprivate init(_ id: PushPartitions.ID) {
        self.init(number: id.number, generation: id.generation)
    }
}
