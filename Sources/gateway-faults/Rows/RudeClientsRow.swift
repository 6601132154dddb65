import GatewayTestSupport

/// Peers that say nothing, half of something, or nonsense.
enum RudeClientsRow {
    static func run(_ context: RowContext) throws {
        let gateway = try GatewayProcess()
        var load = Campaign.Load()
        load.cutPercent = 0
        let campaign = try context.campaign(on: gateway, load)
        campaign.start(&context.generator)
        let recorder = campaign.recorder
        let end = recorder.now + context.seconds
        var slowest = 0.0
        // The first bytes of a TLS ClientHello whose rest never comes.
        let half: [UInt8] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03]
        while recorder.now < end {
            let garbage = (0..<200).map { _ in UInt8(context.generator.below(256)) }
            let crowd = try Crowd(
                gateway, connections: 500,
                sending: context.generator.pick([[], half, garbage]))
            for _ in 0..<20 {
                let start = recorder.now
                _ = try campaign.postUntilAccepted(.pulse)
                slowest = max(slowest, recorder.now - start)
                pause(seconds: 0.05)
            }
            crowd.close(resets: context.generator.happens(50))
        }
        try campaign.settle()
        recorder.require(slowest < 2, "a post over a new connection took \(slowest) s")
        context.figures += [
            ("slowest post over a new connection", slowest.rounded(toPlaces: 3) + " s")
        ]
    }
}
