import Foundation
import GatewayTestSupport

/// Faults of the gateway's process.
extension RowContext {
    /// `kill -9` at random moments, `pauses` seconds after a start, some of them while the gateway
    /// starts.
    func kill(pauses: ClosedRange<Double>) throws {
        let gateway = try GatewayProcess()
        let campaign = try startCampaign(on: gateway) { $0.newClients = 200 }
        let upkeep = OperatorWork(campaign)
        campaign.spawn(&generator) { upkeep.run(&$0) }
        try repeatFault(on: campaign) {
            pauseRandomly(pauses.lowerBound, pauses.upperBound)
            gateway.kill()
            count("kills")
            try startAgain(gateway, killedPercent: 40)
        }
        try campaign.judgeStored()
        let restored = try upkeep.judgeBackup()
        report("backups", upkeep.backups)
        report("changes in the restored log", restored)
        campaign.requireOrderly(gateway.terminate())
    }

    /// `kill -9` with a log that keeps 300 entries, around the moments at which it is shortened.
    func killRetention() throws {
        let (gateway, campaign) = try makeCampaign(logKeeps: 300)
        // Clients that resume below the start of the log are sent `all`.
        campaign.recorder.add(.allExpected)
        campaign.start(&generator)
        try repeatFault(on: campaign) {
            // OperatorWork comes 30 s after a start.
            let isAtUpkeep = generator.happens(30)
            pauseRandomly(isAtUpkeep ? 29 : 0.5, isAtUpkeep ? 31 : 3)
            try gateway.restart()
            count("kills")
        }
    }

    /// Makes a campaign on a gateway whose log keeps so many entries.
    private func makeCampaign(
        logKeeps entries: UInt64, _ adjust: (inout Campaign.Load) -> Void = { _ in }
    ) throws -> (GatewayProcess, Campaign) {
        let configuration = try GatewayConfiguration([
            "publicURL: https://gateway.test", "retention: { changes: \(entries) }",
        ])
        let gateway = try GatewayProcess(
            data: configuration.folder, configuration: configuration.file)
        let campaign = try makeCampaign(on: gateway, adjust)
        campaign.recorder.add(.logKeeps(entries: entries))
        return (gateway, campaign)
    }

    /// The process is stopped for seconds and goes on.
    func stopped() throws {
        let gateway = try GatewayProcess(admin: GatewayProcess.freeAddress())
        let campaign = try startCampaign(on: gateway)
        try repeatFault(on: campaign) {
            pauseRandomly(0.5, 2)
            gateway.signal(SIGSTOP)
            pauseRandomly(0.5, seconds / 3)
            gateway.signal(SIGCONT)
            count("stops")
            reportMost("slowest recovery", seconds: campaign.awaitAcceptance())
            campaign.recorder.require(
                gateway.status(of: "/readyz") == 200, "/readyz is not 200 after a stop")
        }
    }

    /// SIGTERM under load, with many streams.
    func drain() throws {
        let gateway = try GatewayProcess()
        let campaign = try startCampaign(on: gateway) {
            ($0.streams, $0.pollers, $0.cutPercent) = (300, 4, 0)
        }
        report("streams", campaign.load.streams)
        try repeatFault(on: campaign) {
            pauseRandomly(3, 6)
            let start = campaign.recorder.now
            let exit = gateway.terminate()
            count("drains")
            reportMost("slowest drain", seconds: campaign.recorder.now - start)
            campaign.requireOrderly(exit)
            try gateway.start()
        }
    }

    /// A long run without faults but cut streams: memory and descriptors do not grow.
    ///
    /// The log is short, so that the database's page cache, 64 MiB at most, is as full in the first
    /// third as it gets.
    func soak() throws {
        let (gateway, campaign) = try makeCampaign(logKeeps: 20_000) {
            ($0.streams, $0.pollers) = (40, 20)
        }
        campaign.start(&generator)
        func files() -> Int {
            let folder = "/proc/\(gateway.pid)/fd"
            return (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
        }
        pause(seconds: seconds / 3)
        let (firstBytes, firstFiles) = (gateway.residentBytes, files())
        pause(seconds: seconds * 2 / 3)
        let (lastBytes, lastFiles) = (gateway.residentBytes, files())
        let growth = (lastBytes - firstBytes) / 1_048_576
        campaign.recorder.require(
            growth < 40, "resident memory grew by \(growth) MB in the last two thirds")
        campaign.recorder.require(
            lastFiles < firstFiles + 40, "open files: \(firstFiles), later \(lastFiles)")
        try campaign.settle()
        report("MB after a third", firstBytes / 1_048_576)
        report("MB at the end", lastBytes / 1_048_576)
        report("open files after a third", firstFiles)
        report("at the end", lastFiles)
    }

    /// A second gateway, and `epoch new`, on a data directory in use.
    func secondGateway() throws {
        let gateway = try GatewayProcess()
        let campaign = try startCampaign(on: gateway)
        let link = try GatewayProcess.temporaryDirectory() + "/link"
        try FileManager.default.createSymbolicLink(
            atPath: link, withDestinationPath: gateway.data)
        try repeatFault(on: campaign) {
            pauseRandomly(0.1, 0.8)
            let path = generator.pick([gateway.data, link])
            let arguments =
                generator.happens(60)
                ? ["serve", "--data", path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
                : ["epoch", "new", "--data", path]
            let (exit, output) = try GatewayProcess.run(arguments)
            count("tries")
            campaign.recorder.require(
                exit == .status(1) && output.contains("already in use"),
                "\(arguments[0]) while a gateway runs: \(exit): \(output)")
        }
    }

    /// Returns the path of the library that changes a process's clock, where Debian puts it.
    static func libfaketime() throws -> String {
        let library = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
            .map { $0 + "/faketime/libfaketimeMT.so.1" }
            .first { FileManager.default.fileExists(atPath: $0) }
        guard let library else {
            throw RowSkipped(reason: "libfaketime is not installed (Debian package faketime)")
        }
        return library
    }

    /// The system's clock jumps while the gateway runs, and between two starts.
    func clock() throws {
        let file = try GatewayProcess.temporaryDirectory() + "/clock"
        func set(_ offset: String) throws {
            try (offset + "\n").write(toFile: file, atomically: true, encoding: .utf8)
        }
        let library = try Self.libfaketime()
        try set("+0s")
        // By way of `env`: a program written in Swift exits at once when it is the first that
        // libfaketime is loaded into.
        let gateway = try GatewayProcess(
            environment: [
                "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": file, "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            ], wrapper: ["env"])
        let campaign = try makeCampaign(on: gateway) {
            $0.tokenLifetime = 20 * 86_400
            // Before a token was issued, and after its end, it is worth nothing.
            $0.allowedStatuses.insert(401)
        }
        // Forty days on, the log is pruned: who resumes below its start has to be told all.
        campaign.recorder.add(.allExpected)
        campaign.start(&generator)
        let end = campaign.recorder.now + seconds
        while campaign.recorder.now < end {
            try set(generator.pick(["-1h", "+5h", "+40d", "+0s"]))
            count("jumps")
            if generator.happens(30) { try gateway.restart() }
            pauseRandomly(1, 4)
        }
        try set("+0s")
        try campaign.settle()
    }
}
