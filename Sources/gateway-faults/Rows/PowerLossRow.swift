import Foundation
import GatewayTestSupport

/// The power is lost: of what was written to the database and its log and not synced, some is kept,
/// some torn and some gone.
///
/// Renamed and newly made files count as kept: only the contents of the two are rebuilt.
enum PowerLossRow {
    private static let names = ["/store.sqlite", "/store.sqlite-wal"]

    static func run(_ context: RowContext) throws {
        let folder = try GatewayProcess.temporaryDirectory()
        let (data, log) = (folder + "/data", folder + "/strace")
        let gateway = try GatewayProcess(
            data: data,
            wrapper: [
                "strace", "-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", "1000000", "-o", log,
                "-e",
                "signal=none", "-e", "trace=execve,pwrite64,ftruncate,fdatasync,fsync",
            ], startsNow: false)
        // The gateway is not the process started here, but that one's child.
        defer { killTraced(log, gateway) }
        try gateway.start()
        var journals = names.map { WriteJournal(path: $0, content: []) }
        let campaign = try context.campaign(on: gateway)
        campaign.start(&context.generator)
        let end = campaign.recorder.now + context.seconds
        var (losses, kept, torn, dropped) = (0, 0, 0, 0)
        while campaign.recorder.now < end {
            pause(seconds: context.seconds(0.3, 2))
            killTraced(log, gateway)
            losses += 1
            read(log, into: &journals)
            for (index, name) in names.enumerated() {
                let content = journals[index].contentAfterLoss(using: &context.generator)
                kept += journals[index].kept
                torn += journals[index].torn
                dropped += journals[index].dropped
                try Data(content).write(to: URL(filePath: data + name))
                journals[index] = WriteJournal(path: name, content: content)
            }
            // Shared memory does not outlive a loss of power.
            try? FileManager.default.removeItem(atPath: data + "/store.sqlite-shm")
            try gateway.start()
        }
        try campaign.settle()
        context.figures += [
            ("losses of power", "\(losses)"), ("unsynced writes kept", "\(kept)"),
            ("torn", "\(torn)"), ("dropped", "\(dropped)"),
        ]
    }

    /// Kills the gateway that strace watches; strace then ends by itself.
    private static func killTraced(_ log: String, _ gateway: GatewayProcess) {
        guard gateway.exit == nil, let line = try? FileHandle(forReadingFrom: URL(filePath: log)),
            let head = try? line.read(upToCount: 20),
            let pid = Int32(
                String(decoding: head.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
        else { return }
        kill(pid, SIGKILL)
        gateway.waitForExit(seconds: 20)
    }

    private static func read(_ log: String, into journals: inout [WriteJournal]) {
        let bytes = Array(FileManager.default.contents(atPath: log) ?? Data())
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            for index in journals.indices { journals[index].read(line) }
        }
    }
}
