import GatewayTestSupport

/// `kill -9` at random moments, some of them while the gateway starts.
enum KillRow {
    static func run(_ context: RowContext) throws {
        let gateway = try GatewayProcess()
        let campaign = try context.campaign(on: gateway)
        campaign.start(&context.generator)
        let upkeep = Upkeep(campaign)
        campaign.spawn(&context.generator) { upkeep.run(&$0) }
        let end = campaign.recorder.now + context.seconds
        var (kills, early, slowest) = (0, 0, 0.0)
        while campaign.recorder.now < end {
            pause(seconds: context.seconds(0.2, 2.5))
            gateway.kill()
            kills += 1
            if context.generator.happens(40) {
                try gateway.launch()
                pause(seconds: context.seconds(0, 0.4))
                gateway.kill()
                early += 1
            }
            let start = campaign.recorder.now
            try gateway.start()
            slowest = max(slowest, campaign.recorder.now - start)
        }
        try campaign.settle()
        let restored = try upkeep.judgeBackup()
        context.figures += [
            ("kills", "\(kills)"), ("kills while starting", "\(early)"),
            ("slowest start", slowest.rounded(toPlaces: 2) + " s"),
            ("backups", "\(upkeep.backups)"), ("changes in the restored one", "\(restored)"),
        ]
        let exit = gateway.terminate()
        campaign.recorder.require(
            exit == .status(0), "SIGTERM ended it with \(String(describing: exit))")
    }
}
