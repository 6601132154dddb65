import GatewayCore
import WidgetModel

/// Clients that several nodes share: one node pushes to a client, and every node may serve it.
extension PushScheduler {
    /// The knowledge of all nodes about a client.
    package struct Evidence: Sendable, Hashable {
        /// The highest cursor that the client acknowledged, or resumed a stream with; 0 for none.
        package var confirmed: UInt64
        /// Whether a stream of the client is open.
        package var isStreaming: Bool

        /// No node has heard of the client.
        package static let none = Evidence(confirmed: 0, isStreaming: false)

        /// Creates evidence.
        package init(confirmed: UInt64, isStreaming: Bool) {
            self.confirmed = confirmed
            self.isStreaming = isStreaming
        }
    }

    /// The wait before evidence that could not be read is requested again, ms.
    private static let evidenceRetry: Int64 = 2_000

    /// Returns whether a push may be sent by what other nodes, or the loops of its streams, know;
    /// requests it if not. A stream that opened in a collapse window has windows of its own.
    mutating func hasEvidence(_ slot: Int, for route: PushQueue.Route) -> Bool {
        guard let key = lanes[slot]?.client, let state = clients[key]?.evidence,
            isShared || isStreaming(key) && shard.collapses(app: key.app)
        else { return true }
        switch state {
        case .read: return true
        case .requested: return false
        case .unknown:
            clients[key]?.evidence = .requested
            evidenceRequests[key] = route
            queue.began(route)
            actions.append(.readEvidence(key))
            return false
        }
    }

    /// Decides the pushes to a client that waited for the knowledge of other nodes.
    ///
    /// - Parameters:
    ///   - evidence: `nil` if it could not be read, or nothing may be pushed now.
    ///   - sent: The id of the client's streams; `nil` if it was not read.
    package mutating func received(
        _ evidence: Evidence?, about key: ClientKey, sentUpTo sent: UInt64? = nil, now: Int64
    ) {
        guard clients[key]?.evidence == .requested else { return }
        // It is as old as this call: pushes that become due later need it anew.
        clients[key]?.evidence = .read
        if let route = evidenceRequests.removeValue(forKey: key) { queue.ended(route) }
        let (id, known) = (sent ?? streamID(of: key), acknowledged(key))
        visit(key, now: now) { lane, scheduler in
            guard let evidence else {
                return lane.attempts.wait(until: now.later(by: Self.evidenceRetry))
            }
            // An old confirmation is no sign that the last push arrived.
            if evidence.confirmed > max(known, lane.attempts.confirmed) {
                lane.attempts.acknowledged(scheduler.confirmed(lane, by: evidence.confirmed))
            }
            lane.attempts.streamsSent(upTo: id, now: now)
            lane.attempts.isStreamingElsewhere = evidence.isStreaming
            if evidence.isStreaming {
                lane.attempts.streamIsOpenElsewhere(sentUpTo: id, now: now)
            }
        }
        clients[key]?.evidence = .unknown
        drainQueue(now: now)
    }

    /// The progress of a client, which another node needs to take the pushes over.
    package struct Progress: Sendable, Hashable {
        /// The sequence up to which the client was told everything; never falls.
        package var told: UInt64
        /// Whether something after it is owed.
        package var isOwed: Bool
    }

    /// Returns the progress of a client, to be stored; `nil` for one that has no pushes.
    package mutating func progress(of key: ClientKey) -> Progress? {
        guard let client = clients[key] else { return nil }
        let lanes = client.slots.compactMap { self.lanes[$0] }
        let told = lanes.map { $0.attempts.told(at: shard.heartbeat($0.stream) ?? 0) }.min()
        let progress = Progress(
            told: max(client.told, told ?? position),
            isOwed: lanes.contains { $0.attempts.isUnreported })
        clients[key]?.told = progress.told
        return progress
    }

    /// The clients to which pushes are in flight.
    package var clientsUnderWay: Set<ClientKey> { Set(underWay.values.lazy.map(\.client)) }

    /// The clients that can be pushed to.
    package var keys: [ClientKey] { Array(clients.keys) }

    /// Stops the pushes to a client that another node takes over.
    package mutating func release(_ key: ClientKey) {
        forget(key)
        changed.remove(key)
    }
}
