import ArgumentParser
import GatewayDocuments
import WidgetModel

struct ChangesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "List an app's changes, newest first, and what they invalidated.",
        discussion: """
            `explain change` shows for one of the sequences who was told, and why. Needs a token \
            with the scope operator:read.

            --entity and --unmatched filter the changes of the page: with them it may have fewer \
            lines than --limit, or none, and still have a next page.

            Examples:
              timelinectl changes
              timelinectl changes --entity CharacterDetail --limit 1000
              timelinectl changes --unmatched
              timelinectl changes --before 4711 --json
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    @Option(help: ArgumentHelp("Only changes of this entity.", valueName: "type"))
    var entity: String?

    @Flag(help: "Only changes that match no rule.")
    var unmatched = false

    @Option(
        help: ArgumentHelp("Cursor: `before` from the previous page.", valueName: "sequence"))
    var before: UInt64?

    @OptionGroup var page: PageOptions

    func run() async throws {
        let query = page.query([("before", before.map { "\($0)" })])
        try await options.show("/changes?\(query)", of: app, text: text)
    }

    func text(_ page: ChangePage) -> String {
        let changes = page.changes.filter { change in
            (entity == nil || change.entity == entity) && (!unmatched || change.unmatched == true)
        }
        return TextBlock.table(
            ["SEQUENCE", "TIME", "ENTITY", "OPERATION", "PROPERTIES", "INVALIDATED"],
            changes.map { change in
                [
                    String(change.sequence), change.time,
                    [change.entity, change.entityID].compactMap { $0 }.joined(separator: " "),
                    change.operation, (change.properties ?? []).joined(separator: ", "),
                    Self.invalidated(change),
                ]
            }, none: "no changes", next: page.before.map { "--before \($0)" })
    }

    private static func invalidated(_ change: LoggedChange) -> String {
        if change.unmatched == true { return "nothing: matches no rule" }
        let kinds = (change.kinds?.members ?? []).map { "\($0.name) \($0.value)" }
        return (change.broad == true ? "broad: " : "") + kinds.joined(separator: ", ")
    }
}
