import GatewayTestSupport

/// Syncs and writes fail for a while; in some rounds the gateway is killed meanwhile.
enum DiskErrorsRow {
    private static let faults: [(calls: [String], error: String)] = [
        (["fdatasync", "fsync"], "EIO"), (["pwrite64"], "EIO"), (["pwrite64"], "ENOSPC"),
        (["pwrite64", "fdatasync", "fsync", "ftruncate"], "EIO"), (["fdatasync"], "ENOSPC"),
    ]

    static func run(_ context: RowContext) throws {
        let health = try Health()
        let gateway = try GatewayProcess(admin: health.address)
        let campaign = try context.campaign(on: gateway)
        campaign.start(&context.generator)
        let end = campaign.recorder.now + context.seconds
        var (rounds, given, kills, slowest) = (0, 0, 0, 0.0)
        while campaign.recorder.now < end {
            pause(seconds: context.seconds(0.2, 1))
            let fault = context.generator.pick(faults)
            let first = 1 + context.generator.below(4)
            // Once, a few times, or for as long as it lasts.
            let last = ["", "..\(first + 5)", "+"]
            let faults = try SystemCallFaults(
                gateway, calls: fault.calls,
                injection: "error=\(fault.error):when=\(first)\(context.generator.pick(last))")
            pause(seconds: context.seconds(0.2, 2))
            rounds += 1
            let isKilled = context.generator.happens(40)
            if isKilled { gateway.kill() }
            given += faults.end()
            if isKilled {
                kills += 1
                try gateway.start()
            } else {
                campaign.recorder.require(
                    health.live == 200, "/livez is not 200 after a disk error")
            }
            slowest = max(slowest, campaign.awaitAcceptance(seconds: 10))
        }
        try campaign.settle()
        context.figures += [
            ("rounds", "\(rounds)"), ("system calls failed", "\(given)"), ("kills", "\(kills)"),
            ("slowest recovery", slowest.rounded(toPlaces: 2) + " s"),
        ]
    }
}
