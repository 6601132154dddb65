import GatewayTestSupport

/// Every sync takes long.
enum SlowSyncRow {
    static func run(_ context: RowContext) throws {
        let health = try Health()
        let gateway = try GatewayProcess(admin: health.address)
        let campaign = try context.campaign(on: gateway)
        campaign.start(&context.generator)
        let milliseconds = context.generator.pick([50, 200, 500])
        pause(seconds: 1)
        let faults = try SystemCallFaults(
            gateway, calls: ["fdatasync", "fsync"], injection: "delay_enter=\(milliseconds * 1000)")
        let recorder = campaign.recorder
        let end = recorder.now + context.seconds
        var red = 0
        while recorder.now < end {
            if health.ready != 200 { red += 1 }
            recorder.require(health.live == 200, "/livez is not 200 while syncs are slow")
            let quiet = recorder.now - campaign.stage.update { $0.lastAccepted }
            recorder.require(quiet < 10, "no post was accepted for \(Int(quiet)) s")
            pause(seconds: 0.2)
        }
        let given = faults.end()
        try campaign.settle()
        recorder.require(red == 0, "/readyz was not 200 in \(red) looks")
        context.figures += [("milliseconds a sync", "\(milliseconds)"), ("slow syncs", "\(given)")]
    }
}
