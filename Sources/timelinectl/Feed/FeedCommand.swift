import ArgumentParser
import CatalogModel
import Foundation
import GatewayCluster
import GatewaySigning
import NIOCore
import TimelineRuntime
import WidgetModel

struct FeedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "feed",
        abstract: "Post the changes in the log of a database.",
        discussion: """
            `run` reads a replication slot of PostgreSQL, `serve` takes records of Debezium Server \
            or Kafka Connect. Both need neither a trigger nor a change of your application, and one \
            mapping file, in YAML or JSON:

              tables:
                - table: trains
                  entity: Train
                  properties: [delay_minutes=delay, track]
                  attributes: [line_id=line]
                - { table: train_stops, entity: Train, id: train_id, part: true,
                    properties: [departs_at=stops] }

            `schema` is public and `id` is id by default. The other members are the options of \
            `timelinectl outbox init`.
            """,
        subcommands: [Init.self, Check.self, Run.self, Serve.self])

    struct MappingOption: ParsableArguments {
        @Option(help: ArgumentHelp("The mapping file, or - for standard input.", valueName: "file"))
        var mapping: String

        func read() throws -> FeedMapping { try FeedMapping(contentsOf: mapping) }
    }

    struct SlotOption: ParsableArguments {
        @Option(help: "The name of the replication slot and of its publication.")
        var slot = "timeline_feed"

        func validate() throws {
            let letters = Set("abcdefghijklmnopqrstuvwxyz0123456789_".utf8)
            guard (1...63).contains(slot.utf8.count), slot.utf8.allSatisfy(letters.contains) else {
                throw ValidationError("--slot must be 1 to 63 characters of a-z, 0-9 and _")
            }
        }
    }

    struct Init: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init",
            abstract: "Print the SQL of a publication and a replication slot.",
            discussion: """
                Nothing is run. Run it outside a transaction, and again after a change of the \
                mapping or a new partition, as a superuser or as a role that owns the tables, may \
                CREATE in the database, and has REPLICATION (on Amazon RDS: rds_replication). \
                PostgreSQL 14 or later. A table that is in use for 2 s is left as it is, and no \
                slot made: run it again.

                From then on the server keeps its log until `timelinectl feed run` has posted it. \
                To end that: SELECT pg_drop_replication_slot('timeline_feed').

                Example:
                  timelinectl feed init --mapping feed.yaml | psql
                """)

        @OptionGroup var mapping: MappingOption
        @OptionGroup var slot: SlotOption

        func run() throws { Terminal.print(try mapping.read().sql(slot: slot.slot)) }
    }

    struct Check: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Compare a mapping file with a catalog.",
            discussion: """
                Lists tables, properties and attributes that no rule uses, and attributes that \
                rules compare and a table lacks, and ends with status 1 if there is one. Contacts \
                no gateway.

                Example:
                  timelinectl feed check --mapping feed.yaml catalog.yaml
                """)

        @OptionGroup var mapping: MappingOption

        @Flag(help: "Print JSON: the differences as `faults`.")
        var json = false

        @Argument(help: "The catalog, or - for standard input.")
        var file: String

        func run() throws {
            let faults = try mapping.read().differences(
                from: CatalogFile(bytes: Terminal.read(file)))
            if json {
                Terminal.print(JSONValue.object(["faults": .array(faults.map(\.json))]).text)
            } else if faults.isEmpty {
                Terminal.print("\(mapping.mapping) agrees with the catalog")
            } else {
                for fault in faults { Terminal.complain("\(mapping.mapping): \(fault)") }
            }
            if !faults.isEmpty { throw ExitStatus.refused }
        }
    }

    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run",
            abstract: "Post the changes of a PostgreSQL database from its log until SIGTERM.",
            discussion: """
                Reads the slot that `timelinectl feed init` makes, by logical decoding, and posts \
                each change at least once, with an id that makes it count once. The server may \
                forget a transaction when all of its changes are accepted. What the gateway refuses \
                for good is printed and dropped. A slot has one reader: another one waits, and goes \
                on when the first ends.

                Needs a connection to the server itself, as a role with REPLICATION, and a token \
                with the scope changes:write.

                Example:
                  timelinectl feed run --mapping feed.yaml \\
                    --database postgres://feed@/shop?host=/run/postgresql
                """)

        @OptionGroup var database: OutboxCommand.DatabaseOption
        @OptionGroup var mapping: MappingOption
        @OptionGroup var slot: SlotOption
        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        func run() async throws {
            var runner = FeedRunner(
                address: try database.address(), mapping: try mapping.read(), slot: slot.slot,
                form: options.form,
                service: GatewayService(
                    connection: try options.connection(), app: try app.required()))
            do throws(PostgresError) {
                try await runner.run()
            } catch {
                let text = FeedRunner.text(of: error, slot: slot.slot)
                Terminal.complain("timelinectl: \(text)")
                throw ExitStatus.refused
            }
        }
    }

    struct Serve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "serve",
            abstract: "Take changes from Debezium Server or Kafka Connect by HTTP until SIGTERM.",
            discussion: """
                Accepts POST of records of Debezium in JSON, one or an array of them, with or \
                without schemas, or as CloudEvents. Answers 204 when the gateway has accepted what \
                they change, 503 when they have to be posted again, and 400 for what is no record \
                of Debezium; then nothing of the request is posted. Rows of a snapshot are no \
                changes. What the gateway refuses for good is printed and dropped.

                Plain HTTP. With TIMELINE_FEED_TOKEN, requests must have it as bearer token; \
                without, only this machine is served. Needs a token of the gateway with the scope \
                changes:write.

                Example:
                  timelinectl feed serve --mapping feed.yaml --listen 127.0.0.1:8790
                """)

        @Option(help: ArgumentHelp("The address to listen on.", valueName: "host:port"))
        var listen = "127.0.0.1:8790"

        @OptionGroup var mapping: MappingOption
        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        func run() async throws {
            let colon = listen.lastIndex(of: ":") ?? listen.startIndex
            let host = String(listen[..<colon])
            guard let port = UInt16(listen[colon...].dropFirst()), !host.isEmpty else {
                throw ValidationError("--listen must be HOST:PORT, such as 127.0.0.1:8790")
            }
            let token = ProcessInfo.processInfo.environment["TIMELINE_FEED_TOKEN"] ?? ""
            guard !token.isEmpty || ["127.0.0.1", "localhost"].contains(host) else {
                throw ValidationError(
                    "--listen: other machines reach \(host); set TIMELINE_FEED_TOKEN")
            }
            let receiver = FeedReceiver(
                mapping: try mapping.read(),
                token: try token.isEmpty ? nil : SHA256Digest(of: Array(token.utf8)),
                form: options.form,
                service: GatewayService(
                    connection: try options.connection(), app: try app.required()))
            let server = LocalServer(
                connectionTimeMax: .seconds(120), bodyBytesMax: Terminal.inputBytesMax,
                refusal: { receiver.refusal(of: $0) }, answer: { await receiver.answer(to: $0) })
            let form = options.form
            do {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask {
                        try await server.run(host: host, port: Int(port)) { port in
                            let url = "http://\(host):\(port)/"
                            Terminal.print(["ready": .string(url)], as: form) { "ready \(url)" }
                        }
                    }
                    group.addTask { await receiver.waitForEnd() }
                    _ = try await group.next()
                    group.cancelAll()
                }
            } catch {
                throw ValidationError("--listen: cannot serve on \(listen): \(error)")
            }
        }
    }
}

extension FeedMapping {
    /// - Throws: `ValidationError` if the file is no mapping.
    init(contentsOf path: String) throws {
        let file = try CatalogFile(bytes: try Terminal.read(path), called: "mapping")
        do throws(Faults) {
            self = try FeedMapping(file.value)
        } catch {
            throw ValidationError("--mapping: \(error)")
        }
    }

    /// Returns what the mapping has that no rule of a catalog uses, and the reverse.
    ///
    /// - Throws: `ValidationError` if the file is no catalog.
    func differences(from file: CatalogFile) throws -> [Fault] {
        do throws(Faults) {
            return differences(from: try Catalog(file.value, app: nil, limits: Limits())).list
        } catch {
            throw ValidationError("the catalog has faults; \(error)")
        }
    }
}
