import GatewayCore
import NIOCore
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
        try await loop.submit {
            let now = Self.now
            return questions.map { question in
                if let sequence = subject.sequence {
                    self.desk.standing(
                        of: question.item, question.record, app: subject.app, at: sequence,
                        now: now)
                } else {
                    self.desk.forecast(
                        of: question.item, question.record, app: subject.app,
                        urgency: subject.changes[question.change].urgency,
                        devices: question.devices, now: now)
                }
            }
        }.get()
    }

    /// How a client's addresses stand, and the pushes for things of it, each as to a change at a
    /// sequence; beside the latter, up to where the client confirmed to the desk.
    func standing(
        of record: ClientRecord, app: String, _ items: [(item: HeldItem, sequence: UInt64)]
    ) async throws -> (
        addresses: [PushDesk.AddressStanding], items: [(confirmed: UInt64, push: Outcome?)]
    ) {
        try await loop.submit {
            let now = Self.now
            let key = ClientKey(app: app, client: record.client)
            return (
                self.desk.addresses(of: key, now: now),
                items.map {
                    (
                        self.desk.confirmed($0.item, of: record, app: app),
                        self.desk.standing(
                            of: $0.item, record, app: app, at: $0.sequence, now: now)
                    )
                }
            )
        }.get()
    }

    /// Whether the log was applied up to `position`.
    func hasReached(_ position: UInt64) async throws -> Bool {
        try await loop.submit { self.desk.position >= position }.get()
    }
}
