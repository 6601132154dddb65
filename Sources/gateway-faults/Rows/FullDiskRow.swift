import GatewayTestSupport

/// The disk is full, has room again, and so on.
enum FullDiskRow {
    static func run(_ context: RowContext) throws {
        let disk = try SmallDisk(megabytes: 100)
        defer { disk.unmount() }
        let health = try Health()
        let gateway = try GatewayProcess(data: disk.path + "/data", admin: health.address)
        let campaign = try context.campaign(on: gateway)
        campaign.start(&context.generator)
        let recorder = campaign.recorder
        let end = recorder.now + context.seconds
        var (rounds, slowest, starts) = (0, 0.0, 0)
        while recorder.now < end {
            pause(seconds: context.seconds(0.5, 1.5))
            try disk.fill(leaving: context.generator.pick([0, 0, 5_000, 100_000]))
            pause(seconds: context.seconds(1, 3))
            recorder.require(health.live == 200, "/livez is not 200 while the disk is full")
            try judgeRotation(gateway, recorder)
            let restarts = context.generator.happens(30)
            if restarts {
                // It refuses to start, or starts; what it promised must be there either way.
                gateway.kill()
                try gateway.launch()
                pause(seconds: 1)
                gateway.kill()
                starts += 1
            }
            disk.free()
            if restarts { try gateway.start() }
            slowest = max(slowest, campaign.awaitAcceptance(seconds: 10))
            rounds += 1
        }
        try campaign.settle()
        gateway.kill()
        context.figures += [
            ("rounds", "\(rounds)"), ("starts while full", "\(starts)"),
            ("slowest recovery", slowest.rounded(toPlaces: 2) + " s"),
        ]
    }

    /// A new key is made whole or not at all.
    private static func judgeRotation(_ gateway: GatewayProcess, _ recorder: Recorder) throws {
        _ = try GatewayProcess.run(["keys", "rotate", "--data", gateway.data])
        let (exit, output) = try GatewayProcess.run(["keys", "list", "--data", gateway.data])
        recorder.require(exit == .status(0), "the keys cannot be read after a rotation: \(output)")
    }
}
