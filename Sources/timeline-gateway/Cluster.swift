import ArgumentParser
import FleetAdministration
import WidgetModel

/// Commands for the database that several gateways share.
struct Cluster: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prepare the PostgreSQL database of a cluster, and show it.",
        discussion: """
            Gateways with `cluster.url` in their configuration share the log in this database, which \
            keeps its last twelve slices.

            EXAMPLES
              timeline-gateway cluster prepare --database postgres:///timeline?host=/run/postgresql
              timeline-gateway cluster node add --database $DB --login gateway_1 --create-login
              timeline-gateway cluster status --database $DB
            """, subcommands: [Prepare.self, Node.self, Status.self])

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
            abstract: "Create or migrate the roles and the schema; repeatable.",
            discussion: """
                Run it as a member of tg_operator; the first time as a role that may create roles \
                and owns the database, or as a superuser. Either all of the schema is changed or \
                nothing.

                EXAMPLES
                  timeline-gateway cluster prepare --database postgres:///timeline?host=/run/postgresql
                """)

        @OptionGroup var database: DatabaseOption

        @Option(
            help: "Changes in a slice of a new log: a twelfth of what is kept; at least 1000000.")
        var slice: Int64?

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            let done = try failing { try database.connect().prepare(slice: slice) }
            if json {
                let object: JSONValue = [
                    "createdRoles": .bool(done.createdRoles),
                    "versionBefore": .integer(done.versionBefore),
                    "version": .integer(done.version), "log": .string(done.log),
                ]
                return answer(object.text)
            }
            if done.createdRoles { answer("roles: created") }
            switch done.versionBefore {
            case 0: answer("schema: created, version \(done.version)")
            case done.version: answer("schema: version \(done.version), nothing to do")
            case let before: answer("schema: migrated from version \(before) to \(done.version)")
            }
            answer("log: \(done.log)")
        }
    }

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the log, the nodes, the standbys, and what to do.",
            discussion: """
                Needs no more than the role tg_observer.

                EXAMPLES
                  timeline-gateway cluster status --database $DB
                  timeline-gateway cluster status --database $DB --json
                """)

        @OptionGroup var database: DatabaseOption

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            let status = try failing { try database.connect().status() }
            answer(json ? status.json.text : status.lines.joined(separator: "\n"))
        }
    }

    struct Node: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Add or remove a node.",
            discussion: """
                EXAMPLES
                  timeline-gateway cluster node add --database $DB --login gateway_1
                  timeline-gateway cluster node remove --database $DB --login gateway_1
                """, subcommands: [Add.self, Remove.self])

        struct Add: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Make a login a node; repeatable.",
                discussion: """
                    Each node has a login of its own. A login that this command creates has no \
                    password: use a client certificate, or set one with psql.

                    EXAMPLES
                      timeline-gateway cluster node add --database $DB --login gateway_1 \\
                        --url https://gateway-1.example.com --create-login
                    """)

            @OptionGroup var database: DatabaseOption

            @Option(help: "The node's login: a-z, 0-9 and _.")
            var login: String

            @Option(help: "The node's URL, shown to operators.")
            var url: String?

            @Flag(help: "Create the login if it is missing.")
            var createLogin = false

            @Flag(help: "Print JSON.")
            var json = false

            func run() throws {
                let (node, isNew) = try failing {
                    try database.connect().addNode(
                        login: login, url: url, createsLogin: createLogin)
                }
                if json {
                    let object: JSONValue = [
                        "node": .integer(Int64(node.number)), "login": .string(node.login),
                        "isNew": .bool(isNew),
                    ]
                    return answer(object.text)
                }
                answer("node \(node.number): \(node.login)\(isNew ? "" : ", was there")")
            }
        }

        struct Remove: ParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Remove a stopped node and release its partitions.",
                discussion: """
                    Refused while the node's lease runs. The login stays, without rights.

                    EXAMPLES
                      timeline-gateway cluster node remove --database $DB --login gateway_1
                    """)

            @OptionGroup var database: DatabaseOption

            @Option(help: "The node's login.")
            var login: String

            @Flag(help: "Print JSON.")
            var json = false

            func run() throws {
                let (node, released) = try failing {
                    try database.connect().removeNode(login: login)
                }
                if json {
                    let object: JSONValue = [
                        "node": .integer(Int64(node.number)), "login": .string(node.login),
                        "released": .integer(released),
                    ]
                    return answer(object.text)
                }
                answer("node \(node.number) removed, \(released) partitions released")
            }
        }
    }
}
