import GatewayTestSupport

/// SIGTERM under load, with many streams.
enum DrainRow {
    static func run(_ context: RowContext) throws {
        let gateway = try GatewayProcess()
        var load = Campaign.Load()
        (load.streams, load.pollers, load.cutPercent) = (300, 4, 0)
        let campaign = try context.campaign(on: gateway, load)
        campaign.start(&context.generator)
        let end = campaign.recorder.now + context.seconds
        var (drains, slowest) = (0, 0.0)
        repeat {
            pause(seconds: context.seconds(3, 6))
            let start = campaign.recorder.now
            let exit = gateway.terminate(seconds: 30)
            slowest = max(slowest, campaign.recorder.now - start)
            drains += 1
            campaign.recorder.require(
                exit == .status(0), "SIGTERM ended it with \(String(describing: exit))")
            try gateway.start()
        } while campaign.recorder.now < end
        try campaign.settle()
        context.figures += [
            ("streams", "\(load.streams)"), ("drains", "\(drains)"),
            ("slowest drain", slowest.rounded(toPlaces: 2) + " s"),
        ]
    }
}
