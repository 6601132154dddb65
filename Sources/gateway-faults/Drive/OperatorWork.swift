import Foundation
import GatewayTestSupport
import WidgetModel

/// An operator's work meanwhile: backups and new keys.
final class OperatorWork: Sendable {
    private struct State {
        var backups = 0
        /// The newest whole backup, and the batches answered before it began.
        var last: (path: String, batches: [(batch: Int, subjects: [Subject])])?
    }

    private let campaign: Campaign
    private let state = TestHTTPMonitor(State())

    init(_ campaign: Campaign) {
        self.campaign = campaign
    }

    var backups: Int { state.update { $0.backups } }

    /// Takes backups until changes stop, and a new key now and then.
    func run(_ generator: inout SplitMix64) {
        while campaign.isChanging {
            pause(seconds: 0.3 + Double(generator.below(1_500)) / 1000)
            if generator.happens(20) { rotate() } else { try? backUp() }
        }
    }

    private func rotate() {
        _ = try? GatewayProcess.run(["keys", "rotate", "--data", campaign.gateway.data])
    }

    private func backUp() throws {
        let batches = campaign.stage.update { $0.accepted }
        let path = try GatewayProcess.temporaryDirectory() + "/backup"
        let (exit, _) = try GatewayProcess.run(
            ["backup", "--data", campaign.gateway.data, "--to", path],
            program: GatewayProcess.program(named: "timelinectl"))
        // A gateway that is just starting or dying may refuse; half a backup is never left.
        guard exit == .status(0) else {
            campaign.recorder.require(
                !FileManager.default.fileExists(atPath: path), "a failed backup left \(path)")
            return
        }
        state.update { state in
            state.backups += 1
            if let old = state.last { try? FileManager.default.removeItem(atPath: old.path) }
            state.last = (path, batches)
        }
    }

    /// Restores the newest backup, which must contain what was answered 202 before it began.
    /// Returns the number of batches looked for.
    func judgeBackup() throws -> Int {
        guard let last = state.update({ $0.last }) else { return 0 }
        let data = try GatewayProcess.temporaryDirectory() + "/restored"
        let (exit, output) = try GatewayProcess.run(
            ["restore", "--from", last.path, "--data", data],
            program: GatewayProcess.program(named: "timelinectl"))
        guard exit == .status(0) else {
            campaign.recorder.require(false, "cannot restore a backup: \(output)")
            return 0
        }
        let restored = try GatewayProcess(data: data)
        let http = restored.http()
        let sample = last.batches.suffix(40)
        for (batch, subjects) in sample {
            let answer = try http.post(
                Game.events(batch: batch, subjects, run: campaign.run), app: Game.app,
                token: campaign.backend)
            campaign.recorder.require(
                answer["duplicates"]?.integerValue == Int64(subjects.count),
                "batch \(batch), accepted before the backup, is not in it: \(answer.text)")
        }
        return sample.count
    }
}
