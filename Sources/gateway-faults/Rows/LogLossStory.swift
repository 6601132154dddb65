import ClusterTestSupport
import Foundation
import GatewayTestSupport

/// A campaign in steps, for rows that remove from the log what clients already know of.
struct LogLossStory {
    let context: RowContext
    /// The store whose end is lost.
    let store: any CopiedStore
    let campaign: Campaign
    /// The clients that fall behind, and those that keep up.
    let near: [FaultClient]
    let far: [FaultClient]

    init(_ context: RowContext, _ store: any CopiedStore, of deployment: any Deployment) throws {
        self.context = context
        self.store = store
        campaign = try context.makeCampaign(on: deployment) { $0.cutPercent = 0 }
        let clients = campaign.clients.shuffled(using: &context.generator)
        near = Array(clients.prefix(clients.count / 2))
        far = Array(clients.dropFirst(clients.count / 2))
    }

    /// Changes things, copies the store, and changes more, which only ``far`` receive. Returns the
    /// path of the copy.
    func fallBehind() throws -> String {
        try change()
        try resume(campaign.clients)
        let copy = try store.copy()
        try change()
        try resume(far)
        return copy
    }

    /// Posts 10 to 40 batches, and a change that concerns everybody.
    private func change() throws {
        let http = campaign.gateway.http()
        for _ in 0..<(10 + context.generator.below(31)) {
            let subjects = (0...context.generator.below(4)).map { _ in
                Subject.random(using: &context.generator)
            }
            let (batch, _) = campaign.openBatch(subjects)
            _ = try campaign.postUntilAccepted(batch, subjects, on: http)
        }
        _ = try campaign.postUntilAccepted(.pulse)
    }

    /// Polls once for each of these clients.
    private func resume(_ clients: [FaultClient]) throws {
        let http = campaign.gateway.http()
        for client in clients { try campaign.poll(client, http) }
    }

}

/// A store that can be put back to an earlier state.
protocol CopiedStore {
    /// Copies it while nothing is written, and returns the path of the copy.
    func copy() throws -> String
    /// Replaces it, while nothing uses it, by a copy.
    func replace(by copy: String) throws
}

extension ClusterFixture: CopiedStore {}

extension GatewayProcess: CopiedStore {
    func copy() throws -> String {
        // A gateway that ends leaves all of the log in the database.
        _ = terminate()
        let copy = try GatewayProcess.temporaryDirectory() + "/copy"
        try FileManager.default.copyItem(atPath: data, toPath: copy)
        try start()
        return copy
    }

    func replace(by copy: String) throws {
        try FileManager.default.removeItem(atPath: data)
        try FileManager.default.copyItem(atPath: copy, toPath: data)
    }
}
