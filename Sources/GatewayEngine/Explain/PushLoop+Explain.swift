import GatewayCore
import WidgetModel

/// The questions that explanations ask the push loop, one page at a time.
extension PushLoop {
    /// A question about one item of a client.
    struct Question: Sendable {
        let record: ClientRecord
        let item: Subscription
        let change: Int
        /// For a hypothetical change: the number of clients with pushes that it concerns.
        let devices: Int
    }

    /// The state, or the forecast, of pushes for clients' items; one answer for each question.
    func standings(
        _ questions: [Question], of subject: ExplainedChanges
    ) async throws -> [Outcome?] {
        try await ask { scheduler, now in
            questions.map { question in
                if let sequence = subject.sequence {
                    scheduler.standing(
                        of: question.item, question.record, app: subject.app, at: sequence,
                        now: now)
                } else {
                    scheduler.forecast(
                        of: question.item, question.record, app: subject.app,
                        urgency: subject.changes[question.change].urgency,
                        devices: question.devices, now: now)
                }
            }
        }
    }

    /// The sequences up to which clients have acknowledged or resumed, as far as the scheduler
    /// knows.
    func acknowledged(_ keys: [ClientKey]) async throws -> [UInt64] {
        try await ask { scheduler, _ in keys.map(scheduler.acknowledged) }
    }

    /// The state of a client's addresses and of the pushes for its items, each relative to a
    /// change's sequence; with the sequence up to which the scheduler knows the item as confirmed.
    func standing(
        of record: ClientRecord, app: String, _ items: [(item: Subscription, sequence: UInt64)]
    ) async throws -> (
        addresses: [PushScheduler.AddressStatus], items: [(confirmed: UInt64, push: Outcome?)]
    ) {
        try await ask { scheduler, now in
            let key = ClientKey(app: app, client: record.client)
            return (
                scheduler.addresses(of: key, now: now),
                items.map {
                    (
                        scheduler.confirmed($0.item, of: record, app: app),
                        scheduler.standing(
                            of: $0.item, record, app: app, at: $0.sequence, now: now)
                    )
                }
            )
        }
    }
}
