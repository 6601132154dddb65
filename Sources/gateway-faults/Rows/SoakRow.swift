import Foundation
import GatewayTestSupport

/// A long run without faults but cut streams: memory and descriptors do not grow.
enum SoakRow {
    static func run(_ context: RowContext) throws {
        let gateway = try GatewayProcess()
        var load = Campaign.Load()
        (load.streams, load.pollers) = (40, 20)
        let campaign = try context.campaign(on: gateway, load)
        campaign.start(&context.generator)
        pause(seconds: context.seconds / 3)
        let (firstBytes, firstFiles) = (gateway.residentBytes, openFiles(gateway))
        pause(seconds: context.seconds * 2 / 3)
        let (lastBytes, lastFiles) = (gateway.residentBytes, openFiles(gateway))
        let growth = (lastBytes - firstBytes) / 1_048_576
        campaign.recorder.require(
            growth < 40, "resident memory grew by \(growth) MB in the last two thirds")
        campaign.recorder.require(
            lastFiles < firstFiles + 40, "open files: \(firstFiles), later \(lastFiles)")
        try campaign.settle()
        context.figures += [
            ("MB after a third", "\(firstBytes / 1_048_576)"),
            ("MB at the end", "\(lastBytes / 1_048_576)"),
            ("open files after a third", "\(firstFiles)"), ("at the end", "\(lastFiles)"),
        ]
    }

    private static func openFiles(_ gateway: GatewayProcess) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(gateway.pid)/fd").count) ?? 0
    }
}
