import Foundation
import GatewayTestSupport

/// A campaign in steps, for rows that remove from the log what clients already know of.
struct LogLossStory {
    let context: RowContext
    let gateway: GatewayProcess
    let campaign: Campaign
    /// The clients that fall behind, and those that keep up.
    let near: [FaultClient]
    let far: [FaultClient]

    init(_ context: RowContext) throws {
        self.context = context
        gateway = try GatewayProcess()
        campaign = try context.makeCampaign(on: gateway) { $0.cutPercent = 0 }
        let clients = campaign.clients.shuffled(using: &context.generator)
        near = Array(clients.prefix(clients.count / 2))
        far = Array(clients.dropFirst(clients.count / 2))
    }

    /// Changes things, copies the data directory, and changes more, which only ``far`` receive.
    ///
    /// - Returns: The path of the copy.
    func fallBehind() throws -> String {
        try change()
        try resume(campaign.clients)
        // A gateway that ends leaves all of the log in the database.
        _ = gateway.terminate()
        let copy = try GatewayProcess.temporaryDirectory() + "/copy"
        try FileManager.default.copyItem(atPath: gateway.data, toPath: copy)
        try gateway.start()
        try change()
        try resume(far)
        return copy
    }

    /// Posts 10 to 40 batches, and a change that concerns everybody.
    private func change() throws {
        let http = gateway.http()
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
        let http = gateway.http()
        for client in clients { try campaign.poll(client, http) }
    }

    /// Puts a copy in the place of the data directory.
    func replaceData(by copy: String) throws {
        try FileManager.default.removeItem(atPath: gateway.data)
        try FileManager.default.copyItem(atPath: copy, toPath: gateway.data)
    }

    /// Runs `epoch new`.
    func newEpoch() throws {
        let (exit, output) = try GatewayProcess.run(["epoch", "new", "--data", gateway.data])
        campaign.recorder.require(exit == .status(0), "epoch new: \(output)")
    }
}
