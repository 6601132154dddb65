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
        /// What it reported that no cursor of it confirms yet.
        var reported = ReportedRebuilds()
    }

    private struct Streams {
        var count = 0
        /// Where the last one was opened.
        var loop: ShardLoop?
    }

    private struct State {
        var records: [ClientKey: Entry] = [:]
        var streams: [ClientKey: Streams] = [:]
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

    /// Notes that a client acknowledged up to `sequence`, and what it reported as rebuilt.
    ///
    /// - Parameter now: In milliseconds since 1970.
    /// - Returns: How long each rebuild took that is confirmed by it, in milliseconds, and by which
    ///   channel the client hears; `nil` for a client that is not registered.
    func acknowledge(
        _ key: ClientKey, upTo sequence: UInt64, _ claims: [ReportedRebuilds.Claim], now: Int64
    ) -> (confirmed: [Int64], channel: DeliveryChannel)? {
        state.withLock { state in
            guard var entry = state.records[key] else { return nil }
            let confirmed = entry.reported.acknowledged(
                upTo: sequence, before: entry.acknowledged, claims, now: now)
            entry.acknowledged = max(entry.acknowledged, sequence)
            state.records[key] = entry
            return (confirmed, state.streams[key] == nil ? .poll : .stream)
        }
    }

    /// Up to where a client has acknowledged, and the loop of its stream.
    func acknowledged(_ key: ClientKey) -> (sequence: UInt64, loop: ShardLoop?)? {
        state.withLock { state in
            state.records[key].map { ($0.acknowledged, state.streams[key]?.loop) }
        }
    }

    /// Notes that a client resumes from `sequence` with all that it holds; returns how long each
    /// rebuild took that is confirmed by it, in milliseconds.
    func resume(_ key: ClientKey, from sequence: UInt64) -> [Int64] {
        state.withLock { state in
            guard state.records[key]?.reported.isEmpty == false else { return [] }
            return state.records[key]?.reported.resumed(from: sequence) ?? []
        }
    }

    /// By which channel a client hears.
    func channel(_ key: ClientKey) -> DeliveryChannel {
        state.withLock { $0.streams[key] == nil ? .poll : .stream }
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
            let count = state.streams[key]?.count ?? 0
            guard count < streamsMax else { return false }
            state.streams[key, default: Streams()].count = count + 1
            return true
        }
    }

    /// Notes on which loop a stream was opened that was counted in.
    func noteStream(_ key: ClientKey, on loop: ShardLoop) {
        state.withLock { $0.streams[key]?.loop = loop }
    }

    /// Counts a stream out.
    func releaseStream(_ key: ClientKey) {
        state.withLock { state in
            guard let count = state.streams[key]?.count else { return }
            if count > 1 {
                state.streams[key]?.count = count - 1
            } else {
                state.streams[key] = nil
            }
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
