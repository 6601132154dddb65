import GatewayTestSupport

extension RowContext {
    /// The disk is full, has room again, and so on.
    func fullDisk() throws {
        guard SmallDisk.isPossible else { throw RowSkipped(reason: "mounting requires root") }
        let disk = try SmallDisk(megabytes: 100)
        defer { disk.unmount() }
        let gateway = try GatewayProcess(
            data: disk.path + "/data", admin: GatewayProcess.freeAddress())
        let campaign = try startCampaign(on: gateway)
        try repeatFault(on: campaign) {
            count("rounds")
            pauseRandomly(0.5, 1.5)
            try disk.fill(leaving: generator.pick([0, 0, 5_000, 100_000]))
            pauseRandomly(1, 3)
            campaign.requireLive("while the disk is full")
            // A new key is made whole or not at all.
            _ = try GatewayProcess.run(["keys", "rotate", "--data", gateway.data])
            let (exit, output) = try GatewayProcess.run(["keys", "list", "--data", gateway.data])
            campaign.recorder.require(
                exit == .status(0), "cannot read the keys after a rotation: \(output)")
            let restarts = generator.happens(30)
            count("starts while full", restarts ? 1 : 0)
            if restarts {
                // It refuses to start, or starts; what it promised must be there either way.
                gateway.kill()
                try gateway.launch()
                pause(seconds: 1)
                gateway.kill()
            }
            disk.free()
            if restarts { try gateway.start() }
            reportMost("slowest recovery", seconds: campaign.awaitAcceptance())
        }
        gateway.kill()
    }

    /// Every write is answered EROFS, as by a file system that was remounted read-only.
    func readOnly() throws {
        let gateway = try GatewayProcess(admin: GatewayProcess.freeAddress())
        let campaign = try startCampaign(on: gateway)
        let recorder = campaign.recorder
        var (probes, flaps, given, slowest) = (0, 0, 0, 0.0)
        let end = recorder.now + seconds
        while recorder.now < end {
            pauseRandomly(0.5, 1.5)
            let faults = try SystemCallFaults(
                gateway, calls: ["pwrite64", "fdatasync", "fsync", "ftruncate"],
                injection: "error=EROFS")
            let until = recorder.now + randomSeconds(3, 5)
            // Not ready from the first refusal to the end of the fault, and never in between.
            var isRed = false
            while recorder.now < until {
                let ready = gateway.status(of: "/readyz")
                probes += 1
                if isRed && ready == 200 { flaps += 1 }
                isRed = isRed || ready == 503
                campaign.requireLive("while writes fail")
                pause(seconds: 0.05)
            }
            recorder.require(isRed, "/readyz never reported that writes fail")
            given += faults.end()
            slowest = max(slowest, campaign.awaitAcceptance())
        }
        recorder.require(
            flaps == 0, "/readyz was 200 in \(flaps) probes while writes failed")
        try campaign.settle()
        report("system calls failed", given)
        report("probes of /readyz", probes)
        report("slowest recovery", seconds: slowest)
    }

    /// Syncs and writes fail for a while; in some rounds the gateway is killed meanwhile.
    func diskErrors() throws {
        let gateway = try GatewayProcess(admin: GatewayProcess.freeAddress())
        let campaign = try startCampaign(on: gateway)
        try repeatFault(on: campaign) {
            count("rounds")
            pauseRandomly(0.2, 1)
            let fault: (calls: [String], error: String) = generator.pick([
                (["fdatasync", "fsync"], "EIO"), (["pwrite64"], "EIO"), (["pwrite64"], "ENOSPC"),
                (["pwrite64", "fdatasync", "fsync", "ftruncate"], "EIO"),
                (["fdatasync"], "ENOSPC"),
            ])
            let first = 1 + generator.below(4)
            // Once, a few times, or for as long as it lasts.
            let last = generator.pick(["", "..\(first + 5)", "+"])
            let faults = try SystemCallFaults(
                gateway, calls: fault.calls,
                injection: "error=\(fault.error):when=\(first)\(last)")
            pauseRandomly(0.2, 2)
            let isKilled = generator.happens(40)
            if isKilled { gateway.kill() }
            count("system calls failed", faults.end())
            count("kills", isKilled ? 1 : 0)
            if isKilled {
                try gateway.start()
            } else {
                campaign.requireLive("after a disk error")
            }
            reportMost("slowest recovery", seconds: campaign.awaitAcceptance())
        }
    }

    /// Every sync takes long.
    func slowSync() throws {
        let gateway = try GatewayProcess(admin: GatewayProcess.freeAddress())
        let campaign = try startCampaign(on: gateway)
        let milliseconds = generator.pick([50, 200, 500])
        pause(seconds: 1)
        let faults = try SystemCallFaults(
            gateway, calls: ["fdatasync", "fsync"], injection: "delay_enter=\(milliseconds * 1000)")
        let recorder = campaign.recorder
        let end = recorder.now + seconds
        var red = 0
        while recorder.now < end {
            if gateway.status(of: "/readyz") != 200 { red += 1 }
            campaign.requireLive("while syncs are slow")
            let quiet = recorder.now - campaign.stage.update { $0.lastAccepted }
            recorder.require(quiet < 10, "no post was accepted for \(Int(quiet)) s")
            pause(seconds: 0.2)
        }
        let given = faults.end()
        try campaign.settle()
        recorder.require(red == 0, "/readyz was not 200 in \(red) probes")
        report("milliseconds per sync", milliseconds)
        report("slow syncs", given)
    }
}
