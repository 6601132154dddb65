import ArgumentParser
import FleetAdministration
import GatewayFleet
import GatewayOperations
import WidgetModel

/// The way from one gateway to several.
struct Move: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Move a stopped gateway's data directory to a cluster; repeatable.",
        discussion: """
            Copies log, catalogs, registrations, epochs, notification keys and the secret of hashes \
            to a database that `cluster prepare` made and no node has used. Its nodes go on from \
            there: clients keep their cursors, and events that are posted again are duplicates. \
            Until the end no node can write; a move that was broken off is begun again. The \
            directory is only read, and marked at the end, so that no gateway serves from it.

            Push state is not moved, nor are the keys of webhooks.

            EXAMPLES
              timeline-gateway move --from ./data --to $DB --key /etc/timeline/cluster.key
            """)

    @Option(help: "The data directory of the stopped gateway.")
    var from: String

    @Option(help: "The database, as a member of tg_operator; see `cluster prepare --help`.")
    var to: String

    @Option(help: "The file with the cluster's key, as in `cluster.key`: 32 bytes, mode 0600.")
    var key: String

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let directory = DataDirectory(from)
        var lines = ProgressLines()
        let moved = try failing {
            try directory.requireServed(option: "from")
            return try ClusterAdministration(database: to, option: "to").move(
                from: from, timing: directory.keyTiming, keyFile: key,
                mark: { try directory.markMoved(to: $0) }, report: { lines.report($0) })
        }
        answer(json ? moved.json.text : moved.lines.joined(separator: "\n"))
    }
}

/// Shows progress on standard error, at most once a second.
private struct ProgressLines {
    private var shownAt: ContinuousClock.Instant?

    mutating func report(_ progress: DirectoryMove.Progress) {
        let now = ContinuousClock.now
        let isLast = if case .log(let done, let total) = progress { done == total } else { false }
        guard isLast || shownAt.map({ now - $0 >= .seconds(1) }) ?? true else { return }
        shownAt = now
        switch progress {
        case .registrations(let count): complain("registrations: \(count)")
        case .log(let done, let total): complain("log: \(done) of \(total)")
        }
    }
}
