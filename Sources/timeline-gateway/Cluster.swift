import ArgumentParser
import GatewayCluster
import WidgetModel

struct Cluster: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prepare the PostgreSQL database of a cluster, and show it.",
        discussion: """
            Gateways with `cluster.url` in their configuration share the log in this database. One of \
            them leads, the others follow.

            EXAMPLES
              timeline-gateway cluster prepare --database $DB --key /etc/timeline/cluster.key --login gateway
              timeline-gateway cluster status --database $DB
            """, subcommands: [Prepare.self, Status.self, Epoch.self, Forget.self, Reseal.self])

    struct DatabaseOption: ParsableArguments {
        @Option(
            help: """
                The database, postgres://USER@HOST/DATABASE with sslmode=verify-full, or through a \
                Unix socket. Other users of the machine see arguments: give a password by passfile.
                """)
        var database: String

        func connect() throws -> ClusterAdministration {
            try ClusterAdministration(database: database)
        }
    }

    struct Prepare: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Create the rows and roles of a cluster; repeatable.",
            discussion: """
                Run it as the owner of the database; the first time as one that may create roles. The \
                logins that are named become members of the role timeline_node.

                EXAMPLES
                  timeline-gateway cluster prepare --database $DB --key /etc/timeline/cluster.key
                  timeline-gateway cluster prepare --database $DB --key /etc/timeline/cluster.key \\
                    --login gateway_1 --login gateway_2
                """)

        @OptionGroup var database: DatabaseOption

        @Option(help: "The file with the cluster's key, as in `cluster.key`: 32 bytes, mode 0600.")
        var key: String

        @Option(help: "A login of nodes. Repeatable.")
        var login: [String] = []

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            let done = try failing {
                try database.connect().prepare(Seal(contentsOf: key), logins: login)
            }
            if json {
                let object: JSONValue = [
                    "isNew": .bool(done.isNew), "format": .integer(done.format),
                    "log": .string(done.log),
                ]
                return answer(object.text)
            }
            answer(done.isNew ? "cluster: created" : "cluster: present, nothing to do")
            answer("log: \(done.log), format \(done.format)")
            for login in login { answer("login: \(login) may be a node") }
        }
    }

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the log, the leader and the nodes, and what to do.",
            discussion: """
                Needs no more than the role timeline_observer.

                EXAMPLES
                  timeline-gateway cluster status --database $DB
                  timeline-gateway cluster status --database $DB --json
                """)

        @OptionGroup var database: DatabaseOption

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            let status = try failing { try database.connect().status() }
            answer(
                json
                    ? try JSONValue(encoding: status).text
                    : status.lines.joined(separator: "\n"))
        }
    }

    struct Epoch: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Begin a new epoch: every cursor is void, and all clients rebuild everything.",
            discussion: """
                For a database that was restored from a backup when no node noticed it. The leader \
                does it within a second.

                EXAMPLES
                  timeline-gateway cluster epoch --database $DB
                """)

        @OptionGroup var database: DatabaseOption

        func run() throws {
            try failing { try database.connect().voidCursors() }
            answer("the leader voids all cursors")
        }
    }

    struct Forget: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget a node that is gone for good.",
            discussion: """
                EXAMPLES
                  timeline-gateway cluster forget --database $DB --node 10.0.0.3:9443
                """)

        @OptionGroup var database: DatabaseOption

        @Option(help: "The node, as its `cluster.node`.")
        var node: String

        func run() throws {
            let isForgotten = try failing { try database.connect().forget(node: node) }
            guard isForgotten else {
                complain(
                    "\(node) is no node, or it was seen within 10 s: `cluster status` shows them; stop it first"
                )
                throw ExitCode.failure
            }
            answer("\(node): forgotten")
        }
    }

    struct Reseal: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Seal all rows with a new key, so that the old one can go; repeatable.",
            discussion: """
                Run it as the owner of the database while all nodes have the new key first and the \
                old one behind it. They may run. Afterwards take the old key out of their files.

                EXAMPLES
                  timeline-gateway cluster reseal --database $DB --key /etc/timeline/cluster.key
                """)

        @OptionGroup var database: DatabaseOption

        @Option(help: "The file with the cluster's keys, the new one first, as in `cluster.key`.")
        var key: String

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            var shown = ContinuousClock.now
            let (rows, left) = try failing {
                try database.connect().reseal(Seal(contentsOf: key)) { rows in
                    guard ContinuousClock.now - shown >= .seconds(1) else { return }
                    shown = .now
                    complain("sealed anew: \(rows) rows")
                }
            }
            let object: JSONValue = ["rows": .integer(Int64(rows)), "left": .integer(left)]
            answer(json ? object.text : "\(rows) rows are sealed anew")
            guard left == 0 else {
                complain("\(left) rows have another key: put the new one first on every node")
                throw ExitCode.failure
            }
        }
    }
}
