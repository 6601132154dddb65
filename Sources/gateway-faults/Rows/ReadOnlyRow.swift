import GatewayTestSupport

/// Every write is answered EROFS, as by a file system that was remounted read-only.
enum ReadOnlyRow {
    static func run(_ context: RowContext) throws {
        let health = try Health()
        let gateway = try GatewayProcess(admin: health.address)
        let campaign = try context.campaign(on: gateway)
        campaign.start(&context.generator)
        let recorder = campaign.recorder
        let end = recorder.now + context.seconds
        var (looks, flaps, given, slowest) = (0, 0, 0, 0.0)
        while recorder.now < end {
            pause(seconds: context.seconds(0.5, 1.5))
            let faults = try SystemCallFaults(
                gateway, calls: ["pwrite64", "fdatasync", "fsync", "ftruncate"],
                injection: "error=EROFS")
            let until = recorder.now + context.seconds(3, 5)
            // Not ready from the first refusal to the end of the fault, and never in between.
            var isRed = false
            while recorder.now < until {
                let ready = health.ready
                looks += 1
                if isRed && ready == 200 { flaps += 1 }
                isRed = isRed || ready == 503
                recorder.require(
                    health.live == 200, "/livez is not 200 while nothing can be written")
                pause(seconds: 0.05)
            }
            recorder.require(isRed, "/readyz never said that nothing can be written")
            given += faults.end()
            slowest = max(slowest, campaign.awaitAcceptance(seconds: 10))
        }
        recorder.require(
            flaps == 0, "/readyz was 200 in \(flaps) looks while nothing could be written")
        try campaign.settle()
        context.figures += [
            ("system calls failed", "\(given)"), ("looks at /readyz", "\(looks)"),
            ("slowest recovery", slowest.rounded(toPlaces: 2) + " s"),
        ]
    }
}
