import Foundation
import GatewayTestSupport

/// The process is stopped for seconds and goes on.
enum StoppedRow {
    static func run(_ context: RowContext) throws {
        let health = try Health()
        let gateway = try GatewayProcess(admin: health.address)
        let campaign = try context.campaign(on: gateway)
        campaign.start(&context.generator)
        let end = campaign.recorder.now + context.seconds
        var (stops, slowest) = (0, 0.0)
        while campaign.recorder.now < end {
            pause(seconds: context.seconds(0.5, 2))
            gateway.signal(SIGSTOP)
            pause(seconds: context.seconds(0.5, context.seconds / 3))
            gateway.signal(SIGCONT)
            stops += 1
            slowest = max(slowest, campaign.awaitAcceptance(seconds: 10))
            campaign.recorder.require(health.ready == 200, "/readyz is not 200 after a stop")
        }
        try campaign.settle()
        context.figures += [
            ("stops", "\(stops)"), ("slowest recovery", slowest.rounded(toPlaces: 2) + " s"),
        ]
    }
}
