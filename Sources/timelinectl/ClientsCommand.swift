import ArgumentParser
import GatewayDocuments
import TimelineRuntime
import WidgetModel

struct ClientsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clients",
        abstract: "List an app's clients, show or delete one, or erase all of one person's.",
        discussion: """
            Needs a token with the scope clients:write; operator:read suffices to list and show. Push \
            tokens are never printed.

            Examples:
              timelinectl clients list --attribute account:42
              timelinectl clients show my-iphone --json
              timelinectl clients delete my-iphone
              timelinectl clients erase --attribute account:42 --yes
            """,
        subcommands: [List.self, Show.self, Delete.self, Erase.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List clients in order of id, with their state and when they were seen.",
            discussion: """
                STATE is the number of stale items, fresh, or unknown for a client not seen since \
                the gateway started; `explain client` says more.

                Examples:
                  timelinectl clients list
                  timelinectl clients list --prefix my-
                  timelinectl clients list --attribute account:42
                  timelinectl clients list --after my-iphone --limit 1000 --json
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        @Option(help: ArgumentHelp("Only clients with this attribute.", valueName: "name:value"))
        var attribute: AttributeValue?

        @Option(help: ArgumentHelp("Only clients whose ids begin with this.", valueName: "text"))
        var prefix: String?

        @Option(help: ArgumentHelp("Cursor: `after` from the previous page.", valueName: "id"))
        var after: String?

        @OptionGroup var page: PageOptions

        func validate() throws {
            for id in [after, prefix].compactMap({ $0 }) { try requireID(id, of: "a client") }
        }

        func run() async throws {
            try await options.show("/clients?\(query)", of: app, text: Self.text)
        }

        var query: String {
            page.query([
                ("attribute", attribute?.encoded), ("prefix", prefix), ("after", after),
            ])
        }

        static func text(_ page: ClientPage) -> String {
            TextBlock.table(
                ["CLIENT", "PLATFORM", "STATE", "SEEN", "WIDGETS", "SETS", "CONTROLS", "HEARS BY"],
                page.clients.map { client in
                    let platform = [client.platform, client.osVersion]
                        .compactMap { $0 }.joined(separator: " ")
                    let channels = client.delivery.map(\.type)
                    return [
                        client.client, platform, state(of: client), seen(client),
                        String(client.widgets.count),
                        String(client.recommendations.count), String(client.controls.count),
                        channels.isEmpty ? "poll" : channels.joined(separator: ", "),
                    ]
                }, none: "no clients", next: page.after.map { "--after \($0)" })
        }

        private static func state(of client: RegisteredClient) -> String {
            let deaf = client.dependOnNothing.map { ", \($0) lack attributes" } ?? ""
            switch client.stale {
            case nil: return "unknown" + deaf
            case 0?: return "fresh" + deaf
            case let count?: return "\(count) stale" + deaf
            }
        }

        private static func seen(_ client: RegisteredClient) -> String {
            (client.streams ?? 0) > 0 ? "stream open" : client.lastSeen ?? "-"
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show a client's registration.",
            discussion: """
                Examples:
                  timelinectl clients show my-iphone
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        @OptionGroup var client: ClientArgument

        func run() async throws {
            try await options.withService(of: app.required()) { service throws(GatewayFailure) in
                let answer = try await service.json("GET", service.base(ofClient: client.client))
                Terminal.print(answer.value.text)
            }
        }
    }

    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "delete",
            abstract: "Remove a client's registration.",
            discussion: """
                Its streams end, and nothing is pushed to it any more. It registers again when it \
                next connects; deny its token to prevent that.

                Examples:
                  timelinectl clients delete my-iphone
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        @OptionGroup var argument: ClientArgument

        func run() async throws {
            let client = argument.client
            try await options.withService(of: app.required()) { service throws(GatewayFailure) in
                // Deleting what is not there succeeds, but a person may have mistyped.
                _ = try await service.json("GET", service.base(ofClient: client))
                _ = try await service.json("DELETE", service.base(ofClient: client))
                Terminal.print("deleted \(client)")
            }
        }
    }

    struct Erase: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "erase",
            abstract: "Remove every client with an attribute, and all its data.",
            discussion: """
                This cannot be undone; the clients register again when they reconnect. Without \
                --yes it only prints how many clients match, up to 1000.

                Examples:
                  timelinectl clients erase --attribute account:42
                  timelinectl clients erase --attribute account:42 --yes --json
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption

        @Option(help: ArgumentHelp("Attribute of the clients to erase.", valueName: "name:value"))
        var attribute: AttributeValue

        @Flag(help: "Erase the clients.")
        var yes = false

        func run() async throws {
            try await options.withService(of: app.required()) { service throws(GatewayFailure) in
                let target = "\(service.base)/clients?attribute=\(attribute.encoded)"
                if yes {
                    let answer = try await service.json("DELETE", target)
                    try Terminal.print(answer.value, as: options.form) { (done: ErasedClients) in
                        "erased \(done.erased) clients"
                    }
                } else {
                    let answer = try await service.json("GET", target + "&limit=1000")
                    let page = try ClientPage(answer: answer.value)
                    Terminal.print(Self.preview(page), as: options.form) { Self.text(page) }
                }
            }
        }

        /// The number of clients that would be erased, as a document.
        static func preview(_ page: ClientPage) -> JSONValue {
            [
                "wouldErase": .integer(Int64(page.clients.count)),
                "more": .bool(page.after != nil),
            ]
        }

        static func text(_ page: ClientPage) -> String {
            let count = page.clients.count
            let more = page.after != nil ? "more than " : ""
            return "would erase \(more)\(count) clients; repeat with --yes to erase them"
        }
    }
}

/// `account:42`: an attribute's name and value.
struct AttributeValue: ExpressibleByArgument, Equatable {
    let name: String
    let value: String

    init?(argument: String) {
        // `post` and `token` take `=`.
        guard let mark = argument.firstIndex(where: { $0 == ":" || $0 == "=" }),
            mark > argument.startIndex
        else { return nil }
        name = String(argument[..<mark])
        value = String(argument[argument.index(after: mark)...])
    }

    /// The pair in the encoding of a query.
    var encoded: String { GatewayService.encoded("\(name):\(value)") }
}
