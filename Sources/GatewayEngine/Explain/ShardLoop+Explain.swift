import GatewayCore
import NIOCore
import WidgetModel

/// What explaining asks an event loop: a page at a time, so that deliveries go on between.
extension ShardLoop {
    /// Something of a client with streams on this loop, and the keys of a change that hit it.
    struct Question: Sendable {
        let client: String
        let kind: String
        let change: Int
        let keys: [UInt64]
    }

    /// Returns once the loop has applied the log up to `position`.
    func reached(_ position: UInt64) async throws {
        let promise = loop.makePromise(of: Void.self)
        loop.execute { self.whenReached(position) { promise.succeed() } }
        try await promise.futureResult.get()
    }

    /// What open streams say of changes, or would say; one answer for each question.
    func tellings(_ questions: [Question], of subject: ExplainedChanges) async throws -> [Telling?]
    {
        try await loop.submit {
            let now = self.now
            let keys = subject.decisions.map { decision in
                if let sequence = subject.sequence {
                    self.shard.tellings(of: decision.keys, by: subject.ruleSet, at: sequence)
                } else {
                    self.shard.forecast(of: decision.keys, by: subject.ruleSet, now: now)
                }
            }
            return questions.map {
                self.shard.telling(
                    $0.client, app: subject.app, kind: $0.kind, keys[$0.change], of: $0.keys,
                    at: subject.sequence)
            }
        }.get()
    }

    /// What of clients is stale by what they confirmed; one answer for each.
    func unconfirmed(
        _ clients: [(app: String, record: ClientRecord, confirmed: UInt64)]
    ) async throws -> [[UnconfirmedItem]] {
        try await loop.submit {
            clients.map {
                self.shard.unconfirmed(of: $0.record, app: $0.app, confirmed: $0.confirmed)
            }
        }.get()
    }

    /// How everything of a client stands, and its streams on this loop.
    func standing(
        of record: ClientRecord, app: String
    ) async throws -> (items: [ItemStanding], floor: UInt64, streams: [StreamStanding])? {
        try await loop.submit {
            self.shard.items(of: record, app: app).map {
                ($0.items, $0.floor, self.shard.streams(of: record.client, app: app))
            }
        }.get()
    }
}
