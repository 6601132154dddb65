import ArgumentParser
import Foundation

/// A fault that the campaign tries.
struct Row: Sendable, ExpressibleByArgument {
    let name: String
    /// Its place in the table of findings that it comes from.
    let finding: String
    /// One line for `--list`.
    let summary: String
    /// The seconds of its faults in the smoke run; `nil` when it is not part of it.
    var smokeSeconds: Double?
    /// The seeds of the whole campaign, and the seconds of each.
    var seeds = 10
    var seconds = 20.0
    /// Runs it on a gateway of its own. Throws ``RowSkipped`` where the machine cannot give this
    /// fault, and any other error where the run could not be finished.
    let run: @Sendable (RowContext) throws -> Void

    private static let single = [
        Row(
            name: "registration", finding: "V1",
            summary: "registrations change while streams open", smokeSeconds: 8
        ) { try $0.registration() },
        Row(
            name: "lost-tail", finding: "V3",
            summary: "an older copy of the data, without `epoch new`", smokeSeconds: 4
        ) { try $0.lostTail() },
        Row(
            name: "kill", finding: "1",
            summary: "kill -9 during posts, registrations, catalogs, key rotation and backups",
            smokeSeconds: 8
        ) { try $0.kill(pauses: 0.2...2.5) },
        Row(
            name: "kill-retention", finding: "1b",
            summary: "kill -9 with a log that keeps 300 entries", seconds: 30
        ) { try $0.killRetention() },
        Row(
            name: "power-loss", finding: "1c",
            summary: "power loss: unsynced writes are kept, torn or lost"
        ) { try $0.powerLoss() },
        Row(
            name: "full-disk", finding: "2",
            summary: "the disk is full, then has space again (needs root)", smokeSeconds: 6
        ) { try $0.fullDisk() },
        Row(
            name: "read-only", finding: "3", summary: "every write fails with EROFS",
            smokeSeconds: 5
        ) { try $0.readOnly() },
        Row(
            name: "disk-errors", finding: "4a",
            summary: "writes and syncs fail, some with kill -9 during them", smokeSeconds: 6
        ) { try $0.diskErrors() },
        Row(
            name: "slow-sync", finding: "4b", summary: "every sync takes up to half a second",
            seconds: 15
        ) { try $0.slowSync() },
        Row(
            name: "descriptors", finding: "5, V2", summary: "more connections than descriptors",
            smokeSeconds: 8, seconds: 15
        ) { try $0.descriptors() },
        Row(name: "memory", finding: "6, V4", summary: "60 concurrent posts of 7 MB") {
            try $0.memory()
        },
        Row(
            name: "stopped", finding: "7a", summary: "SIGSTOP for seconds, then SIGCONT",
            smokeSeconds: 5
        ) { try $0.stopped() },
        Row(
            name: "clock", finding: "7b", summary: "the clock jumps, running and between starts"
        ) { try $0.clock() },
        Row(
            name: "damage", finding: "8",
            summary: "damaged files of the data directory; the seed chooses which", smokeSeconds: 4
        ) { try $0.damage() },
        Row(
            name: "second-gateway", finding: "9",
            summary: "a second gateway and `epoch new` while the first runs", smokeSeconds: 4,
            seconds: 10
        ) { try $0.secondGateway() },
        Row(
            name: "drain", finding: "10", summary: "SIGTERM under load with 300 streams", seeds: 1,
            seconds: 30
        ) { try $0.drain() },
        Row(
            name: "soak", finding: "11", summary: "15 minutes; memory and descriptors do not grow",
            seeds: 1, seconds: 900
        ) { try $0.soak() },
        Row(
            name: "rude-clients", finding: "12",
            summary: "silent, incomplete and nonsensical connections", smokeSeconds: 4, seeds: 1,
            seconds: 60
        ) { try $0.rudeClients() },
    ]

    static let all = single + cluster
}

extension Row {
    init?(argument: String) {
        guard let row = Self.all.first(where: { $0.name == argument }) else { return nil }
        self = row
    }

    static var allValueStrings: [String] { all.map(\.name) }

    var help: String { "  " + name.padding(toLength: 15, withPad: " ", startingAt: 0) + summary }
}

/// The machine cannot give a fault.
struct RowSkipped: Error {
    let reason: String
}
