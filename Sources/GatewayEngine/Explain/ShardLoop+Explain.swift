import GatewayCore
import NIOCore
import WidgetModel

/// The questions that explanations ask an event loop, one page at a time so that deliveries
/// continue.
extension ShardLoop {
    /// A question about a client with streams on this loop, with the keys of a change that concern
    /// it.
    struct Question: Sendable {
        let client: String
        let kind: String
        let change: Int
        let keys: [UInt64]
    }

    /// Returns once the loop has applied the log up to `position`.
    package func reached(_ position: UInt64) async throws {
        let promise = loop.makePromise(of: Void.self)
        loop.execute { self.whenReached(position) { promise.succeed() } }
        try await promise.futureResult.get()
    }

    /// The notifications that open streams sent, or would send, for changes; one answer for each
    /// question.
    func tellings(_ questions: [Question], of subject: ExplainedChanges) async throws
        -> [StreamDeliveryState?]
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
                    to: $0.client, app: subject.app, kind: $0.kind, tellings: keys[$0.change],
                    of: $0.keys, at: subject.sequence)
            }
        }.get()
    }

    /// The maximum number of items checked at once; each costs some microseconds of the loop.
    static let itemsAtOnce = 200

    /// The clients' items that are stale relative to what each confirmed; one list for each client.
    /// The clients should have at most ``itemsAtOnce`` items in all.
    func unconfirmed(
        _ clients: [(app: String, record: ClientRecord, confirmed: UInt64)]
    ) async throws -> [[UnconfirmedItem]] {
        try await loop.submit {
            clients.map {
                self.shard.unconfirmed(of: $0.record, app: $0.app, confirmed: $0.confirmed)
            }
        }.get()
    }

    /// The state of a client's items, and its streams on this loop.
    func standing(
        of record: ClientRecord, app: String
    ) async throws -> (items: [ItemStatus], floor: UInt64, streams: [StreamStatus])? {
        try await loop.submit {
            self.shard.items(of: record, app: app).map {
                ($0.items, $0.floor, self.shard.streams(of: record.client, app: app))
            }
        }.get()
    }
}

extension ClientRecord {
    /// The number of items checked for a client, plus one for the client itself.
    var itemCost: Int {
        let sets = registration.recommendations.reduce(0) { $0 + 1 + $1.items.count }
        return 1 + registration.widgets.count + registration.controls.count
            + registration.activities.count + sets
    }
}
