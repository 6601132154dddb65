import GatewayCore
import GatewayDocuments

/// The states of listed clients.
extension Explainer {
    /// Sets the members of clients' documents that change over time: when each was last seen, its
    /// streams, and the number of its stale items. Documents of clients that are no longer
    /// registered stay as they are.
    ///
    /// A turn of an event loop that checks items is as short as that of a poll.
    package func describe(_ documents: inout [RegisteredClient], app: String) async throws {
        let clients = documents.indices.compactMap { index in
            engine.registry.client(ClientKey(app: app, client: documents[index].client)).map {
                (index: index, seen: $0)
            }
        }
        let acknowledged = try await acknowledged(clients.map(\.seen.record), app: app)
        let time = time
        let listed = zip(clients, acknowledged).map { client, acknowledged in
            let hearing = client.seen.hearing
            return Listed(
                index: client.index, seen: client.seen,
                confirmed: max(hearing.confirmed, acknowledged),
                isKnown: hearing.isHeardOf || !client.seen.loops.isEmpty || acknowledged > 0)
        }
        let ruleSet = engine.catalogs.ruleSet(of: app)
        for client in listed {
            documents[client.index].lastSeen = client.seen.lastSeen(at: time)
            documents[client.index].streams = client.seen.streams
            let deaf = ruleSet?.itemsWithoutDependency(in: client.seen.record) ?? 0
            if deaf > 0 { documents[client.index].dependOnNothing = deaf }
        }
        let known = listed.filter(\.isKnown)
        for (loop, asked) in Dictionary(grouping: known, by: { Int($0.seen.loops.first ?? 0) }) {
            for portion in asked.portions(
                costing: ShardLoop.itemsAtOnce, each: \.seen.record.itemCost)
            {
                let items = try await engine.loops.all[loop].unconfirmed(
                    portion.map { (app, $0.seen.record, $0.confirmed) })
                for (client, items) in zip(portion, items) {
                    documents[client.index].stale = items.count
                }
            }
        }
    }

    private struct Listed: Sendable {
        let index: Int
        let seen: Registry.Seen
        /// The sequence up to which the client has confirmed its subscriptions.
        let confirmed: UInt64
        /// Whether that is known since the gateway started.
        let isKnown: Bool
    }

    /// The sequence up to which each client has acknowledged, as far as the push scheduler knows.
    private func acknowledged(_ records: [ClientRecord], app: String) async throws -> [UInt64] {
        guard let push = engine.push, records.contains(where: \.isPushable) else {
            return records.map { _ in 0 }
        }
        return try await push.acknowledged(
            records.map { ClientKey(app: app, client: $0.client) })
    }
}

extension Registry.Seen {
    /// The time at which the client was last seen, in RFC 3339; `nil` if unknown.
    func lastSeen(at time: MonotonicTime) -> String? {
        if !loops.isEmpty { return timestamp(time.wall) }
        return seenAt > 0 ? timestamp(seenAt) : nil
    }
}
