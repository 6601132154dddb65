import Foundation
import GatewayTestSupport

/// A campaign in steps, for rows that take from the log what clients already know of.
struct LogLossStory {
    let context: RowContext
    let gateway: GatewayProcess
    let campaign: Campaign
    /// The clients that fall behind, and those that keep up.
    let near: [FaultClient]
    let far: [FaultClient]

    init(_ context: RowContext, _ gateway: GatewayProcess) throws {
        self.context = context
        self.gateway = gateway
        var load = Campaign.Load()
        load.cutPercent = 0
        campaign = try context.campaign(on: gateway, load)
        let clients = campaign.clients.shuffled(using: &context.generator)
        near = Array(clients.prefix(clients.count / 2))
        far = Array(clients.dropFirst(clients.count / 2))
    }

    /// Posts 10 to 40 batches, the last of which concerns everybody.
    func change() throws {
        let http = gateway.http()
        for _ in 0..<(10 + context.generator.below(31)) {
            let subjects = (0...context.generator.below(4)).map { _ in
                context.generator.happens(80)
                    ? Subject.character(context.generator.pick(Game.characters))
                    : .account(context.generator.pick(Game.accounts))
            }
            let (batch, _) = campaign.openBatch(subjects)
            _ = try campaign.postUntilAccepted(batch, subjects, on: http)
        }
        _ = try campaign.postUntilAccepted(.pulse)
    }

    /// Polls once for each of these clients.
    func resume(_ clients: [FaultClient]) throws {
        let http = gateway.http()
        for client in clients { try campaign.poll(client, http) }
    }

    /// Has these clients listen until the run settles.
    func listen(_ clients: [FaultClient]) {
        campaign.listen(clients, &context.generator)
    }

    /// Ends the gateway, which leaves all of the log in the database, and copies its data directory.
    func copyStopped() throws -> String {
        _ = gateway.terminate()
        let copy = try GatewayProcess.temporaryDirectory() + "/copy"
        try FileManager.default.copyItem(atPath: gateway.data, toPath: copy)
        return copy
    }

    /// Puts a copy in the place of the data directory.
    func replaceData(by copy: String) throws {
        try FileManager.default.removeItem(atPath: gateway.data)
        try FileManager.default.copyItem(atPath: copy, toPath: gateway.data)
    }
}
