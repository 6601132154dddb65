import GatewayCore
import GatewayPush
import WidgetModel

/// What explaining asks the loop that pushes, a page at a time.
extension PushLoop {
    /// Something of a client.
    struct Question: Sendable {
        let record: ClientRecord
        let item: HeldItem
        let change: Int
        /// For a change that is not made: how many clients that are pushed to it concerns.
        let devices: Int
    }

    /// How the pushes for something of clients stand, or would stand; one answer for each question.
    func standings(
        _ questions: [Question], of subject: ExplainedChanges
    ) async throws -> [Outcome?] {
        try await ask { desk, now in
            questions.map { question in
                if let sequence = subject.sequence {
                    desk.standing(
                        of: question.item, question.record, app: subject.app, at: sequence,
                        now: now)
                } else {
                    desk.forecast(
                        of: question.item, question.record, app: subject.app,
                        urgency: subject.changes[question.change].urgency,
                        devices: question.devices, now: now)
                }
            }
        }
    }

    /// How a client's addresses stand, and the pushes for things of it, each as to a change at a
    /// sequence; beside the latter, up to where the client confirmed to the desk.
    func standing(
        of record: ClientRecord, app: String, _ items: [(item: HeldItem, sequence: UInt64)]
    ) async throws -> (
        addresses: [PushDesk.AddressStanding], items: [(confirmed: UInt64, push: Outcome?)]
    ) {
        try await ask { desk, now in
            let key = ClientKey(app: app, client: record.client)
            return (
                desk.addresses(of: key, now: now),
                items.map {
                    (
                        desk.confirmed($0.item, of: record, app: app),
                        desk.standing(
                            of: $0.item, record, app: app, at: $0.sequence, now: now)
                    )
                }
            )
        }
    }
}
