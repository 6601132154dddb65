import GatewayCore

/// The index of an event loop of the gateway, which has far fewer than the type allows.
typealias LoopIndex = UInt16

/// The registrations in force, in memory, with the number of each client's streams and its delivery
/// progress.
///
/// The log's writer adds a registration when it is on disk, before any event loop receives it. It
/// is read to open a stream or answer a poll, never for a delivery. Kept in parts, each with its
/// own lock: code that visits all clients blocks others only for the duration of one part.
package final class Registry: Sendable {
    struct Entry {
        var record: ClientRecord
        /// The sequences up to which the client has acknowledged and polls have reported; changes
        /// from before its registration do not concern it.
        var acknowledged: UInt64
        var told: UInt64
        /// The reported rebuilds that no cursor of the client confirms yet.
        var reported = ReportedRebuilds()
        var hearing = DeliveryProgress()
        var contact: Contact
    }

    struct Contact {
        /// The time at which the client was last seen, in milliseconds since 1970; 0 if unknown.
        var at: Int64
        /// Whether the client contacted the gateway since its start.
        var isSinceStart = false
    }

    /// An open stream, or a poll that waits.
    package struct OpenStream: Sendable, Equatable {
        let loop: LoopIndex
        let id: StreamID
        let isPoll: Bool
        /// Whether it is for all kinds.
        let isWhole: Bool
    }

    struct Streams {
        var newest: OpenStream
        /// The others, oldest first, which few clients have.
        var others: [OpenStream] = []

        var loops: [LoopIndex] { [newest.loop] + others.map(\.loop) }
    }

    struct Part {
        var records: [ClientKey: Entry] = [:]
        var streams: [ClientKey: Streams] = [:]
        var seen: Set<ClientKey> = []
        /// The clients whose contact with this gateway changed; `nil` without other gateways.
        var changed: Set<ClientKey>?
        /// The contacts of clients with other gateways, by the gateway's name.
        var elsewhere: [ClientKey: [String: NodeContact]] = [:]
    }

    /// The number of parts: with a million clients each has 4,000.
    package static let partCount = 256

    let parts = (0..<partCount).map { _ in Mutexed(Part()) }
    private let streamsMax: Int

    /// Creates an empty registry. A client may have `streamsMax` streams and as many waiting polls.
    ///
    /// - Parameter notesContacts: Whether another gateway asks for ``takeContacts(all:)``.
    package init(streamsMax: Int, notesContacts: Bool = false) {
        self.streamsMax = streamsMax
        guard notesContacts else { return }
        for part in parts { part.withLock { $0.changed = [] } }
    }

    func withPart<Result: Sendable>(
        of key: ClientKey, _ body: (inout sending Part) -> Result
    ) -> Result {
        parts[Int(UInt(bitPattern: key.hashValue) % UInt(Self.partCount))].withLock(body)
    }

    /// The number of registered clients.
    package var count: Int { parts.reduce(0) { $0 + $1.withLock { $0.records.count } } }

    package func record(_ key: ClientKey) -> ClientRecord? {
        withPart(of: key) { $0.records[key]?.record }
    }

    /// The clients that can be pushed to, ordered by when their addresses were last stated.
    var pushable: [(key: ClientKey, record: ClientRecord)] {
        parts.flatMap { part in
            part.withLock { part in
                part.records.compactMap { key, entry in
                    entry.record.isPushable ? (key: key, record: entry.record) : nil
                }
            }
        }.sorted {
            ($0.record.addressedAt, $0.key.app, $0.key.client)
                < ($1.record.addressedAt, $1.key.app, $1.key.client)
        }
    }

    /// Adds or replaces a registration that is on disk.
    ///
    /// - Parameters:
    ///   - head: The last sequence on disk.
    ///   - isRestored: Whether the registration existed when the gateway started.
    ///   - seenAt: The time at which the client was last seen, in milliseconds since 1970. Has no
    ///     effect on a client that is registered already.
    package func put(
        _ record: ClientRecord, app: String, at head: UInt64, isRestored: Bool = false,
        seenAt: Int64 = 0
    ) {
        let key = ClientKey(app: app, client: record.client)
        withPart(of: key) {
            if $0.records[key] == nil {
                $0.records[key] = Entry(
                    record: record, acknowledged: head, told: head,
                    hearing: DeliveryProgress(isRestored: isRestored),
                    contact: Contact(at: seenAt))
            } else {
                $0.records[key]?.record = record
            }
        }
    }

    package func remove(_ key: ClientKey) {
        withPart(of: key) {
            $0.records[key] = nil
            $0.seen.remove(key)
        }
    }

    package func removeAll(of app: String) {
        for part in parts {
            part.withLock { part in
                for key in part.records.keys where key.app == app { part.records[key] = nil }
                part.seen = part.seen.filter { $0.app != app }
            }
        }
    }

    // MARK: Delivery progress

    /// Records that a client acknowledged up to `sequence`, and the rebuilds that it reported.
    ///
    /// - Parameter now: In milliseconds since 1970.
    /// - Returns: The rebuilds confirmed by it, and the channel that notifies the client; `nil` for
    ///   a client that is not registered.
    func acknowledge(
        _ key: ClientKey, upTo sequence: UInt64, _ claims: [ReportedRebuilds.TimelineReport],
        now: Int64
    ) -> (confirmed: [ReportedRebuilds.Confirmation], channel: DeliveryChannel)? {
        withPart(of: key) { part in
            guard var entry = part.records[key] else { return nil }
            let confirmed = entry.reported.acknowledged(
                upTo: sequence, before: entry.acknowledged, claims, now: now)
            entry.acknowledged = max(entry.acknowledged, sequence)
            entry.hearing.confirmed(upTo: sequence)
            part.records[key] = entry
            part.changed?.insert(key)
            return (confirmed, part.hasStream(key) ? .stream : .poll)
        }
    }

    /// Returns the sequence up to which a client has acknowledged, and the loop of its stream.
    func acknowledged(_ key: ClientKey) -> (sequence: UInt64, loop: LoopIndex?)? {
        withPart(of: key) { part in
            part.records[key].map { ($0.acknowledged, part.streams[key]?.newest.loop) }
        }
    }

    /// Records that a client resumes from `sequence` with all its subscriptions; returns the
    /// rebuilds confirmed by it.
    func resume(_ key: ClientKey, from sequence: UInt64) -> [ReportedRebuilds.Confirmation] {
        withPart(of: key) { part in
            part.records[key]?.hearing.confirmed(upTo: sequence)
            part.changed?.insert(key)
            guard part.records[key]?.reported.isEmpty == false else { return [] }
            return part.records[key]?.reported.resumed(from: sequence) ?? []
        }
    }

    func channel(_ key: ClientKey) -> DeliveryChannel {
        withPart(of: key) { $0.hasStream(key) ? .stream : .poll }
    }

    /// Records that a poll reported a change at `sequence` to a client; returns whether it is the
    /// first to do so.
    package func noteTold(_ key: ClientKey, _ sequence: UInt64) -> Bool {
        withPart(of: key) { part in
            guard let entry = part.records[key], entry.told < sequence else { return false }
            part.records[key]?.told = sequence
            return true
        }
    }

    /// Records that a poll reported everything up to `sequence`, for some kinds or for all.
    package func notePolled(_ key: ClientKey, upTo sequence: UInt64, kinds: Set<String>?) {
        withPart(of: key) {
            $0.records[key]?.hearing.polled(upTo: sequence, kinds: kinds)
            $0.changed?.insert(key)
        }
    }

    /// Resets all delivery progress, because the log lost a tail and the progress is void.
    func forgetHearing() {
        for part in parts {
            part.withLock { part in
                for key in part.records.keys {
                    part.records[key]?.hearing = DeliveryProgress(isRestored: true)
                }
                part.elsewhere = part.elsewhere.mapValues { $0.mapValues(\.withoutPositions) }
            }
        }
    }

    // MARK: Streams

    /// Records a stream that was opened, or a poll that begins to wait.
    ///
    /// - Returns: The client's oldest of the same kind if it now has too many. It is no longer
    ///   recorded; the caller must end it.
    func noteStream(_ key: ClientKey, _ stream: OpenStream) -> OpenStream? {
        withPart(of: key) { part in
            part.changed?.insert(key)
            guard let before = part.streams[key]?.newest else {
                part.streams[key] = Streams(newest: stream)
                return nil
            }
            part.streams[key]?.newest = stream
            part.streams[key]?.others.append(before)
            let alike = part.streams[key]?.others.filter { $0.isPoll == stream.isPoll } ?? []
            guard alike.count >= streamsMax, let oldest = alike.first else { return nil }
            part.remove(oldest, of: key)
            return oldest
        }
    }

    /// Returns a client's streams, and its polls that wait.
    func streams(of key: ClientKey) -> [OpenStream] {
        withPart(of: key) { $0.streams[key].map { $0.others + [$0.newest] } ?? [] }
    }

    /// Releases a stream that has ended, and records the sequence up to which it had delivered, for
    /// some kinds or for all.
    func releaseStream(
        _ key: ClientKey, _ stream: OpenStream, toldUpTo sequence: UInt64, kinds: Set<String>?
    ) {
        withPart(of: key) { part in
            part.records[key]?.hearing.streamed(upTo: sequence, kinds: kinds)
            part.changed?.insert(key)
            part.remove(stream, of: key)
        }
    }

    // MARK: All clients

    /// A snapshot of a client.
    struct Seen: Sendable {
        let record: ClientRecord
        let hearing: DeliveryProgress
        let loops: [LoopIndex]
        /// The other gateways at which it has streams.
        let nodes: [String]
        let streams: Int
        /// The time at which it was last seen, in milliseconds since 1970; 0 if unknown. A client
        /// with a stream is seen all the time.
        let seenAt: Int64
        /// Whether the client contacted the gateway since its start.
        let isSeen: Bool
    }

    /// The clients of an app in one of ``partCount`` parts.
    func clients(of app: String, part: Int) -> [Seen] {
        parts[part].withLock { part in
            part.records.compactMap { key, entry in
                key.app == app ? part.seen(key, entry) : nil
            }
        }
    }

    /// The clients in one of ``partCount`` parts that have a stream or have contacted the gateway
    /// since its start.
    ///
    /// - Parameter isWanted: Receives the sequence up to which each client has confirmed its
    ///   subscriptions.
    func heardOf(
        part: Int, where isWanted: (ClientKey, _ confirmed: UInt64) -> Bool
    ) -> [(key: ClientKey, seen: Seen)] {
        parts[part].withLock { part in
            part.records.compactMap { key, entry in
                let seen = part.seen(key, entry)
                guard seen.hearing.isHeardOf || seen.streams > 0,
                    isWanted(key, seen.hearing.confirmed)
                else { return nil }
                return (key, seen)
            }
        }
    }

    /// Calls `body` for each client in one of ``partCount`` parts.
    package func look(part: Int, _ body: (ClientKey, ClientRecord) -> Void) {
        parts[part].withLock { part in
            for (key, entry) in part.records { body(key, entry.record) }
        }
    }

    func client(_ key: ClientKey) -> Seen? {
        withPart(of: key) { part in part.records[key].map { part.seen(key, $0) } }
    }

    /// Records that the client registered, polled, acknowledged, or opened or ended a stream.
    ///
    /// - Parameters:
    ///   - now: In milliseconds since 1970.
    ///   - isStored: Whether the store knows of it already.
    package func noteSeen(_ key: ClientKey, now: Int64, isStored: Bool = false) {
        withPart(of: key) { part in
            let contact = Contact(at: now, isSinceStart: true)
            let isRegistered: Void? = part.records[key]?.contact = contact
            if isRegistered != nil, !isStored { part.seen.insert(key) }
            part.changed?.insert(key)
        }
    }

    /// Returns the clients seen since the last call, with the time: now for a client with a stream.
    ///
    /// - Parameters:
    ///   - now: In milliseconds since 1970.
    ///   - withStreams: Whether to include clients that only have a stream.
    package func takeSeen(now: Int64, withStreams: Bool) -> [(key: ClientKey, at: Int64)] {
        parts.flatMap { part in
            part.withLock { part in
                defer { part.seen = [] }
                var keys = part.seen
                if withStreams {
                    keys.formUnion(part.streams.keys)
                    keys.formUnion(
                        part.elsewhere.lazy.filter { $0.value.contains { $0.value.streams > 0 } }
                            .map(\.key))
                }
                return keys.map { key in
                    (key, part.hasStream(key) ? now : part.records[key]?.contact.at ?? now)
                }
            }
        }
    }
}

extension Registry.Part {
    fileprivate func seen(_ key: ClientKey, _ entry: Registry.Entry) -> Registry.Seen {
        let elsewhere = elsewhere[key] ?? [:]
        return Registry.Seen(
            record: entry.record, hearing: entry.hearing, loops: streams[key]?.loops ?? [],
            nodes: elsewhere.filter { $0.value.streams > 0 }.keys.sorted(),
            streams: elsewhere.values.reduce(streams[key].map { $0.others.count + 1 } ?? 0) {
                $0 + $1.streams
            }, seenAt: entry.contact.at, isSeen: entry.contact.isSinceStart)
    }

    /// Whether a client has a stream, or a poll that waits, at this gateway or another one.
    fileprivate func hasStream(_ key: ClientKey) -> Bool {
        streams[key] != nil || elsewhere[key]?.contains { $0.value.streams > 0 } ?? false
    }

    /// The clients that did anything at this gateway since its start.
    var contacted: Set<ClientKey> {
        Set(streams.keys).union(records.lazy.filter { $0.value.contact.isSinceStart }.map(\.key))
    }

    /// A client's contact with this gateway.
    func contact(of key: ClientKey) -> NodeContact {
        var contact = NodeContact()
        let streams = streams[key].map { $0.others + [$0.newest] } ?? []
        contact.streams = streams.count
        contact.isStreaming = streams.contains { $0.isWhole && !$0.isPoll }
        guard let entry = records[key] else { return contact }
        (contact.confirmed, contact.seenAt) = (entry.hearing.confirmed, entry.contact.at)
        (contact.polled, contact.streamed) = entry.hearing.toldOfAll
        return contact
    }

    fileprivate mutating func remove(_ stream: Registry.OpenStream, of key: ClientKey) {
        if let place = streams[key]?.others.firstIndex(of: stream) {
            streams[key]?.others.remove(at: place)
        } else if streams[key]?.newest == stream {
            if let next = streams[key]?.others.popLast() {
                streams[key]?.newest = next
            } else {
                streams[key] = nil
            }
        }
    }
}
