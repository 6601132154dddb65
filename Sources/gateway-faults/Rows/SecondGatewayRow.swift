import Foundation
import GatewayTestSupport

/// A second gateway, and `epoch new`, on a data directory in use.
enum SecondGatewayRow {
    static func run(_ context: RowContext) throws {
        let gateway = try GatewayProcess()
        let campaign = try context.campaign(on: gateway)
        campaign.start(&context.generator)
        let link = try GatewayProcess.temporaryDirectory() + "/link"
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: gateway.data)
        let recorder = campaign.recorder
        let end = recorder.now + context.seconds
        var tries = 0
        while recorder.now < end {
            pause(seconds: context.seconds(0.1, 0.8))
            let path = context.generator.pick([gateway.data, link])
            let arguments =
                context.generator.happens(60)
                ? ["serve", "--data", path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
                : ["epoch", "new", "--data", path]
            let (exit, output) = try GatewayProcess.run(arguments, seconds: 30)
            tries += 1
            recorder.require(
                exit == .status(1) && output.contains("already in use"),
                "\(arguments[0]) beside a gateway: \(exit): \(output)")
        }
        try campaign.settle()
        context.figures += [("tries", "\(tries)")]
    }
}
