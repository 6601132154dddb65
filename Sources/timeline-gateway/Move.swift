import ArgumentParser
import GatewayCluster
import GatewayOperations
import WidgetModel

struct Move: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Move a stopped gateway's log to a cluster; repeatable.",
        discussion: """
            Copies everything in the store of a data directory to a database that `cluster prepare` \
            made and no node has used. The directory then is that of the first node: serve from it \
            with `cluster.url`. Clients keep their cursors, events that are posted again are \
            duplicates, and pushes go on where they were. A move that was broken off is begun again.

            EXAMPLES
              timeline-gateway move --from ./data --to $DB --key /etc/timeline/cluster.key
            """)

    @Option(help: "The data directory of the stopped gateway.")
    var from: String

    @Option(help: "The database, as its owner; see `cluster prepare --help`.")
    var to: String

    @Option(help: "The file with the cluster's key, as in `cluster.key`: 32 bytes, mode 0600.")
    var key: String

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let directory = DataDirectory(from)
        var shown = ContinuousClock.now
        let moved: ClusterAdministration.Moved
        do {
            try directory.requireServed(option: "from")
            let seal = try Seal(contentsOf: key)
            moved = try await ClusterAdministration(database: to, option: "to").move(
                from: from, seal,
                attributes: StoredRegistration.attributes,
                report: { rows in
                    guard ContinuousClock.now - shown >= .seconds(1) else { return }
                    shown = .now
                    complain("moved: \(rows) rows")
                })
        } catch {
            complain("timeline-gateway move: \(error)")
            throw ExitCode.failure
        }
        if json {
            let object: JSONValue = [
                "rows": .integer(Int64(moved.rows)), "head": .integer(Int64(moved.head)),
            ]
            return answer(object.text)
        }
        answer("\(moved.rows) rows, up to \(moved.head): serve from \(from) with cluster.url")
    }
}
