import Foundation
import GatewayTestSupport

/// The system's clock jumps while the gateway runs, and between two starts.
enum ClockRow {
    /// libfaketime, where Debian puts it.
    private static func library() throws -> String {
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
        for folder in folders {
            let path = folder + "/faketime/libfaketimeMT.so.1"
            if FileManager.default.fileExists(atPath: path) { return path }
        }
        throw RowSkipped(reason: "libfaketime is not installed (Debian package faketime)")
    }

    static func run(_ context: RowContext) throws {
        let file = try GatewayProcess.temporaryDirectory() + "/clock"
        func set(_ offset: String) throws {
            try (offset + "\n").write(toFile: file, atomically: true, encoding: .utf8)
        }
        try set("+0s")
        // By way of `env`: a program written in Swift exits at once when it is the first that
        // libfaketime is loaded into.
        let gateway = try GatewayProcess(
            environment: [
                "LD_PRELOAD": try library(), "FAKETIME_TIMESTAMP_FILE": file,
                "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            ], wrapper: ["env"])
        var load = Campaign.Load()
        load.tokenLifetime = "20d"
        // Before a token was issued, and after its end, it is worth nothing.
        load.allowedStatuses.insert(401)
        let campaign = try context.campaign(on: gateway, load)
        // Forty days on, the log is pruned: who resumes below its start has to be told all.
        campaign.recorder.add(.allExpected)
        campaign.start(&context.generator)
        let end = campaign.recorder.now + context.seconds
        var jumps = 0
        while campaign.recorder.now < end {
            try set(context.generator.pick(["-1h", "+5h", "+40d", "+0s"]))
            jumps += 1
            if context.generator.happens(30) { try gateway.restart() }
            pause(seconds: context.seconds(1, 4))
        }
        try set("+0s")
        try campaign.settle()
        context.figures += [("jumps", "\(jumps)")]
    }
}
