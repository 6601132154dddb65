import GatewayCore
import WidgetModel

/// The clients that a node pushes to, of those that several nodes share: the clients of the
/// partitions that it owns.
///
/// The rows of a partition are read while its clients register, change and disappear. A row is as of
/// a position of the log: it is used once the node has applied the log up to there, and not for a
/// client whose registration came with the log meanwhile, which is newer.
package struct PushPartitions: Sendable {
    /// A partition, as one owner has it.
    package struct ID: Sendable, Hashable {
        package let number: Int32
        /// The generation, which each change of the owner raises.
        package let generation: Int64

        package init(number: Int32, generation: Int64) {
            (self.number, self.generation) = (number, generation)
        }
    }

    /// The stored progress of a client.
    package struct Progress: Sendable {
        /// The state of its pushes; `nil` if it cannot be read.
        package let saved: PushScheduler.SavedClient?
        /// The sequence up to which it was told everything.
        package let told: UInt64
        /// The sequence up to which it is owed only what its state says.
        package let clear: UInt64

        package init(saved: PushScheduler.SavedClient?, told: UInt64, clear: UInt64 = 0) {
            (self.saved, self.told, self.clear) = (saved, told, saved == nil ? 0 : clear)
        }
    }

    /// A change of what the node owns, in the order in which it happens to a partition.
    package enum Event: Sendable {
        /// The partition is the node's: its rows follow.
        case acquired(ID)
        /// Registrations of clients that can be pushed to, as of a position.
        case registrations(ID, [ClientKey: ClientRecord], asOf: UInt64)
        /// Progress of clients, as of a position.
        case progress(ID, [ClientKey: Progress], asOf: UInt64)
        /// All rows were read.
        case loaded(ID)
        /// Another node takes it over once this one has stored its last rows.
        case handOver(ID)
        /// Another node has taken it over.
        case lost(ID)
    }

    /// A client whose pushes begin here.
    package struct Restored: Sendable {
        package let key: ClientKey
        /// Its registration.
        package let record: ClientRecord
        /// Its stored progress; `nil` for one that has none.
        package let progress: Progress?
    }

    fileprivate struct Loading {
        var asOf: UInt64 = 0
        var isComplete = false
        var records: [ClientKey: ClientRecord] = [:]
        var progress: [ClientKey: Progress] = [:]
        /// The registrations that came with the log meanwhile; `nil` for a client that was removed.
        var newer: [ClientKey: ClientRecord?] = [:]
        /// The apps that were removed meanwhile, whose rows are void.
        var removedApps: Set<String> = []
    }

    private struct Holding {
        let generation: Int64
        /// `nil` once all rows are in use.
        var loading: Loading? = Loading()
        /// The clients that are pushed to.
        var clients: Set<ClientKey> = []
        /// Whether another node waits for the partition.
        var isLeaving = false
    }

    /// Returns the number of a client's partition.
    private let number: @Sendable (ClientKey) -> Int32
    private var holdings: [Int32: Holding] = [:]
    /// The numbers of the partitions that are being loaded.
    private var loading: Set<Int32> = []

    /// Creates an instance that owns nothing.
    ///
    /// - Parameter number: Returns the number of a client's partition.
    package init(number: @escaping @Sendable (ClientKey) -> Int32) { self.number = number }

    // MARK: Ownership

    /// Takes a partition whose rows follow.
    package mutating func acquire(_ id: ID) {
        holdings[id.number] = Holding(generation: id.generation)
        loading.insert(id.number)
    }

    /// Adds registrations of a partition that is being loaded.
    package mutating func add(
        _ records: [ClientKey: ClientRecord], of id: ID, asOf position: UInt64
    ) {
        load(id, asOf: position) { $0.records.merge(records) { $1 } }
    }

    /// Adds progress of the clients of a partition that is being loaded.
    package mutating func add(
        _ progress: [ClientKey: Progress], of id: ID, asOf position: UInt64
    ) {
        load(id, asOf: position) { $0.progress.merge(progress) { $1 } }
    }

    /// Records that all rows of a partition were added.
    package mutating func complete(_ id: ID) { load(id, asOf: 0) { $0.isComplete = true } }

    private mutating func load(
        _ id: ID, asOf position: UInt64, _ change: (inout Loading) -> Void
    ) {
        guard owns(id), var loading = holdings[id.number]?.loading else { return }
        change(&loading)
        loading.asOf = max(loading.asOf, position)
        holdings[id.number]?.loading = loading
    }

    /// Begins no push to a partition's clients any more.
    package mutating func leave(_ id: ID) {
        if owns(id) { holdings[id.number]?.isLeaving = true }
    }

    /// Removes a partition; returns its clients that are pushed to.
    package mutating func remove(_ id: ID) -> Set<ClientKey> {
        guard owns(id) else { return [] }
        loading.remove(id.number)
        return holdings.removeValue(forKey: id.number)?.clients ?? []
    }

    /// Returns whether the node owns a partition at its generation.
    package func owns(_ id: ID) -> Bool { holdings[id.number]?.generation == id.generation }

    /// Returns the partition of a client; `nil` if it is not the node's.
    package func partition(of key: ClientKey) -> ID? {
        let number = number(key)
        return holdings[number].map { ID(number: number, generation: $0.generation) }
    }

    /// Returns whether pushes to a client may begin.
    package func mayPush(to key: ClientKey) -> Bool {
        holdings[number(key)]?.isLeaving == false
    }

    /// Returns the clients of a partition that are pushed to.
    package func clients(of id: ID) -> Set<ClientKey> {
        owns(id) ? holdings[id.number]?.clients ?? [] : []
    }

    /// The partitions whose clients are all pushed to.
    package var complete: [ID] {
        holdings.compactMap { number, holding in
            holding.loading == nil ? ID(number: number, generation: holding.generation) : nil
        }
    }

    /// Returns whether all clients of a partition are pushed to.
    package func isComplete(_ id: ID) -> Bool {
        owns(id) && holdings[id.number]?.loading == nil
    }

    // MARK: The log

    /// Applies a registration that came with the log; returns whether the scheduler applies it now.
    package mutating func registered(_ record: ClientRecord, _ key: ClientKey) -> Bool {
        let number = number(key)
        guard let holding = holdings[number] else { return false }
        if holding.loading != nil, !holding.clients.contains(key) {
            holdings[number]?.loading?.newer[key] = .some(record)
            return false
        }
        holdings[number]?.clients.insert(key)
        return true
    }

    /// Applies the removal of a client.
    package mutating func removed(_ key: ClientKey) {
        let number = number(key)
        guard holdings[number] != nil else { return }
        holdings[number]?.clients.remove(key)
        holdings[number]?.loading?.newer[key] = .some(nil)
    }

    /// Applies the removal of an app with its clients.
    package mutating func removed(app: String) {
        for (number, holding) in holdings {
            holdings[number]?.clients = holding.clients.filter { $0.app != app }
        }
        for number in loading {
            guard var loading = holdings[number]?.loading else { continue }
            loading.newer = loading.newer.filter { $0.key.app != app }
            loading.removedApps.insert(app)
            holdings[number]?.loading = loading
        }
    }

    // MARK: Loaded clients

    /// Returns clients whose rows are in force, at most `limit`; they count as pushed to.
    ///
    /// - Parameter position: The position up to which the log was applied.
    package mutating func restorations(at position: UInt64, limit: Int) -> [Restored] {
        var restored: [Restored] = []
        for number in loading where restored.count < limit {
            guard var holding = holdings[number], var rows = holding.loading, rows.isComplete,
                rows.asOf <= position
            else { continue }
            // Released, so that what follows changes it in place.
            holdings[number]?.loading = nil
            while restored.count < limit, let next = rows.next() {
                holding.clients.insert(next.key)
                restored.append(next)
            }
            let isOver = rows.records.isEmpty && rows.newer.isEmpty
            holding.loading = isOver ? nil : rows
            holdings[number] = holding
            if isOver { loading.remove(number) }
        }
        return restored
    }
}

extension PushPartitions.Loading {
    /// Removes and returns the next client to be restored; `nil` after the last.
    fileprivate mutating func next() -> PushPartitions.Restored? {
        while let (key, stored) = records.popFirst() {
            let newer = newer.removeValue(forKey: key)
            if newer == nil, removedApps.contains(key.app) { continue }
            guard let record = newer ?? stored else { continue }
            return restored(key, record)
        }
        // Clients that registered after the rows were read.
        while let (key, newer) = newer.popFirst() {
            if let newer { return restored(key, newer) }
        }
        return nil
    }

    private func restored(_ key: ClientKey, _ record: ClientRecord) -> PushPartitions.Restored {
        // The progress of a client of a removed app is void with it.
        PushPartitions.Restored(
            key: key, record: record,
            progress: removedApps.contains(key.app) ? nil : progress[key])
    }
}
