import ArgumentParser
import Foundation
import GatewayCluster
import TimelineRuntime
import WidgetModel

struct OutboxCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "outbox",
        abstract: "Post the changes of a PostgreSQL database.",
        discussion: """
            `init` prints SQL for your migrations: a table, and for a table of yours a trigger that \
            adds an event for each changed row, in the transaction that changes it. `run` posts the \
            events until they are accepted. Your application needs neither a library nor a hook.
            """,
        subcommands: [Init.self, Run.self, Status.self])

    struct DatabaseOption: ParsableArguments {
        @Option(
            help: """
                The database (TIMELINE_OUTBOX_DATABASE): postgres://USER@HOST/DATABASE with \
                sslmode=verify-full, or through a Unix socket. Give a password by passfile, or in \
                the variable: other users of the machine see arguments.
                """)
        var database: String?

        func address() throws -> PostgresAddress {
            let variable = ProcessInfo.processInfo.environment["TIMELINE_OUTBOX_DATABASE"]
            guard let text = database ?? variable, !text.isEmpty else {
                throw ValidationError(
                    "no database given; set --database or TIMELINE_OUTBOX_DATABASE")
            }
            do throws(PostgresAddress.Rejection) {
                return try PostgresAddress(text)
            } catch {
                throw ValidationError("--database: \(error.description)")
            }
        }
    }

    static func text(of error: PostgresError) -> String {
        // The error's own advice is for the database of a cluster.
        guard case .schema = error else { return "database: \(error)" }
        return """
            database: it has no outbox, or the login may not use it: run what `timelinectl outbox \
            init` prints, and the GRANTs in it
            """
    }

    static func fail(_ error: PostgresError) -> ExitCode {
        Terminal.complain("timelinectl: \(text(of: error))")
        return ExitStatus.refused
    }

    struct Init: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init",
            abstract: "Print the SQL of the outbox and of a table's trigger.",
            discussion: """
                Nothing is run: add the SQL to your migrations. It may run again. Roles that write \
                to the table need no right on the outbox. A migration that renames or drops one of \
                the columns has to bring new SQL. PostgreSQL 14 or later.

                With --part a row is a part of the entity, which an inserted or deleted row only \
                updates: --id is then the column that refers to it.

                Examples:
                  timelinectl outbox init --table trains --entity Train \\
                    --property delay_minutes=delay --property track --attribute line_id=line
                  timelinectl outbox init --table train_stops --entity Train --id train_id --part \\
                    --property departs_at=stops
                """)

        @Option(help: "The table.")
        var table: String

        @Option(help: "The schema of the table.")
        var schema = "public"

        @Option(help: ArgumentHelp("The entity's type, as in the catalog.", valueName: "type"))
        var entity: String

        @Option(help: ArgumentHelp("The column with the entity's id.", valueName: "column"))
        var id = "id"

        @Option(
            name: .customLong("property"),
            help: ArgumentHelp(
                "A column, and the property that it is. Default: every column, unnamed. Repeatable.",
                valueName: "column[=name]"))
        var properties: [TableMapping.Column] = []

        @Option(
            name: .customLong("attribute"),
            help: ArgumentHelp(
                "A column whose value rules compare. NULL matches every value. Repeatable.",
                valueName: "column[=name]"))
        var attributes: [TableMapping.Column] = []

        @Flag(help: "A row is a part of the entity.")
        var part = false

        func validate() throws {
            guard !attributes.contains(where: { $0.name == "id" }) else {
                throw ValidationError("an attribute cannot be called id; use --id, or =NAME")
            }
        }

        func run() {
            let mapping = TableMapping(
                schema: schema, table: table, entity: entity, id: id, properties: properties,
                attributes: attributes, isPart: part)
            Terminal.print(Outbox.sql + "\n" + mapping.triggerSQL)
        }
    }

    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run",
            abstract: "Post the events of an outbox until SIGTERM.",
            discussion: """
                Posts each event at least once, always with the same id, so that it counts once, \
                and deletes it when it is accepted. What the gateway refuses is set aside with the \
                reason. Several pollers may run beside each other. Prints at most one line a \
                minute, and one about failures.

                Needs a connection to the server itself, not to a pool, and a token with the scope \
                changes:write.

                Examples:
                  timelinectl outbox run --database postgres://poller@/shop?host=/run/postgresql
                """)

        @OptionGroup var database: DatabaseOption
        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        func run() async throws {
            var poller = OutboxPoller(
                address: try database.address(), form: options.form,
                service: GatewayService(
                    connection: try options.connection(), app: try app.required()))
            do throws(PostgresError) {
                try await poller.run()
            } catch {
                throw OutboxCommand.fail(error)
            }
        }
    }

    struct Status: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status",
            abstract: "Show what waits in an outbox, and what was set aside.",
            discussion: """
                DEAD are events that the gateway refused, with the reason for one of them. To post \
                them again: UPDATE timeline_outbox.event SET dead = false WHERE dead.
                """)

        @OptionGroup var database: DatabaseOption

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            let address = try database.address()
            let status: OutboxStatus
            do throws(PostgresError) {
                status = try OutboxStatus(address)
            } catch {
                throw OutboxCommand.fail(error)
            }
            let document = try JSONValue(encoding: status)
            Terminal.print(document, as: json ? .json : .text) { status.text }
        }
    }
}

extension OutboxStatus {
    var text: String {
        TextBlock.table(
            ["ENTITY", "WAITING", "OLDEST", "DEAD", "REASON"],
            entities.map {
                [
                    $0.entity, "\($0.waiting)", $0.oldestSeconds.map { "\($0) s" } ?? "-",
                    "\($0.dead)", $0.reason ?? "",
                ]
            }, none: "the outbox is empty")
    }
}
