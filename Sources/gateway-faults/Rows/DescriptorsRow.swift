import Foundation
import GatewayTestSupport

/// More connections come than the gateway may open files (finding V2).
enum DescriptorsRow {
    static func run(_ context: RowContext) throws {
        let limit = context.generator.pick([256, 512, 1_024])
        let gateway = try GatewayProcess(wrapper: ["prlimit", "--nofile=\(limit):\(limit)"])
        var load = Campaign.Load()
        (load.streams, load.pollers) = (6, 2)
        let campaign = try context.campaign(on: gateway, load)
        campaign.start(&context.generator)
        let recorder = campaign.recorder
        pause(seconds: 1)
        let crowd = try Crowd(gateway, connections: limit + 400)
        let (pid, connections) = (gateway.pid, crowd.count)
        let end = recorder.now + context.seconds
        while recorder.now < end, gateway.exit == nil { pause(seconds: 0.2) }
        recorder.require(
            gateway.exit == nil && gateway.pid == pid,
            "it died with \(limit) descriptors: \(String(describing: gateway.exit))")
        crowd.close()
        if gateway.exit != nil { try gateway.start() }
        let recovery = campaign.awaitAcceptance(seconds: 10)
        try campaign.settle()
        context.figures += [
            ("descriptors", "\(limit)"), ("connections of the crowd", "\(connections)"),
            ("recovery", recovery.rounded(toPlaces: 2) + " s"),
        ]
    }
}
