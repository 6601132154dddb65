import GatewayCore
import Synchronization

/// The registrations in force, in memory, and who holds how many streams.
///
/// Written by the log's writer when a registration is on disk and before any event loop hears of
/// it; read by whoever opens a stream or polls. Never touched by a delivery.
final class Registry: Sendable {
    private struct Entry {
        var record: ClientRecord
        /// Up to where the client has acknowledged, and up to where polls have told it; what was
        /// accepted before it registered is of no interest.
        var acknowledged: UInt64
        var told: UInt64
    }

    private struct State {
        var records: [ClientKey: Entry] = [:]
        var streams: [ClientKey: Int] = [:]
        var seen: Set<ClientKey> = []
    }

    private let state = Mutex(State())
    private let streamsMax: Int

    /// An empty registry that allows each client so many streams.
    init(streamsMax: Int) {
        self.streamsMax = streamsMax
    }

    /// How many clients are registered.
    var count: Int { state.withLock { $0.records.count } }

    func record(_ key: ClientKey) -> ClientRecord? {
        state.withLock { $0.records[key]?.record }
    }

    /// The clients that can be pushed to, in the order in which it was last said how.
    var pushable: [(key: ClientKey, record: ClientRecord)] {
        state.withLock { state in
            state.records.compactMap { key, entry in
                entry.record.isPushable ? (key, entry.record) : nil
            }.sorted {
                ($0.record.addressedAt, $0.key.app, $0.key.client)
                    < ($1.record.addressedAt, $1.key.app, $1.key.client)
            }
        }
    }

    /// Clients with a recommendation set confirmed below `sequence`, at most `limit` of them.
    func confirmed(below sequence: UInt64, limit: Int) -> [(key: ClientKey, record: ClientRecord)] {
        state.withLock { state in
            var found: [(key: ClientKey, record: ClientRecord)] = []
            for (key, entry) in state.records
            where entry.record.confirmed.values.contains(where: { $0 < sequence }) {
                found.append((key, entry.record))
                if found.count == limit { break }
            }
            return found
        }
    }

    /// Takes a registration that is on disk.
    ///
    /// - Parameter head: The last sequence on disk.
    func put(_ record: ClientRecord, app: String, at head: UInt64) {
        let key = ClientKey(app: app, client: record.client)
        state.withLock {
            if $0.records[key] == nil {
                $0.records[key] = Entry(record: record, acknowledged: head, told: head)
            } else {
                $0.records[key]?.record = record
            }
        }
    }

    /// Notes that a client acknowledged up to `sequence`; returns up to where it had before, and
    /// by which channel it hears.
    func noteAcknowledged(
        _ key: ClientKey, _ sequence: UInt64
    ) -> (before: UInt64, channel: DeliveryChannel)? {
        state.withLock { state in
            guard let entry = state.records[key] else { return nil }
            state.records[key]?.acknowledged = max(entry.acknowledged, sequence)
            return (entry.acknowledged, state.streams[key] == nil ? .poll : .stream)
        }
    }

    /// Notes that a poll told a client of a change at `sequence`; returns whether it is the first
    /// to do so.
    func noteTold(_ key: ClientKey, _ sequence: UInt64) -> Bool {
        state.withLock { state in
            guard let entry = state.records[key], entry.told < sequence else { return false }
            state.records[key]?.told = sequence
            return true
        }
    }

    func remove(_ key: ClientKey) {
        state.withLock {
            $0.records[key] = nil
            $0.seen.remove(key)
        }
    }

    /// Counts a stream in, or answers `false` when the client holds as many as it may.
    func admitStream(_ key: ClientKey) -> Bool {
        state.withLock { state in
            let count = state.streams[key, default: 0]
            guard count < streamsMax else { return false }
            state.streams[key] = count + 1
            return true
        }
    }

    /// Counts a stream out.
    func releaseStream(_ key: ClientKey) {
        state.withLock { state in
            guard let count = state.streams[key] else { return }
            state.streams[key] = count > 1 ? count - 1 : nil
        }
    }

    /// Notes that the client polled, acknowledged or holds a stream.
    func noteSeen(_ key: ClientKey) {
        state.withLock { state in
            if state.records[key] != nil { state.seen.insert(key) }
        }
    }

    /// The clients seen since the last call, those that hold streams included.
    func takeSeen() -> Set<ClientKey> {
        state.withLock { state in
            let seen = state.seen.union(state.streams.keys)
            state.seen = []
            return seen
        }
    }
}
