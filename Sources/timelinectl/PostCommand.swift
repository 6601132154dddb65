import ArgumentParser
import Foundation
import GatewayDocuments
import TimelineClient
import WidgetModel

/// Posts data changes.
struct PostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "post",
        abstract: "Announce a data change.",
        discussion: """
            Post a change once clients can read the new data. Either describe one with options, or \
            send a file of CloudEvents in JSON: an object is one event, an array a batch that is \
            accepted or rejected as a whole. Needs a token with the scope changes:write.

            Without --event-id each post is a new event. With it, posting the same event again has \
            no effect, so a script can retry after a failure.

            Examples:
              timelinectl post --entity CharacterDetail --id Unipony --property healthLevel
              timelinectl post --entity GameStatus --attribute account=42 --urgency high
              timelinectl post --entity CharacterDetail --id Spouty --operation delete \\
                --source backend/1 --event-id 7f3a
              timelinectl post --file events.json
              export-changes | timelinectl post --file -
            """)

    @OptionGroup var options: CommonOptions
    @OptionGroup var app: AppOption

    @OptionGroup var stated: EventOptions

    func validate() throws {
        guard (stated.file == nil) != (stated.entity == nil) else {
            throw ValidationError("give either --entity or --file")
        }
    }

    func run() async throws {
        let (document, mediaType) = try stated.document()
        let service = GatewayService(connection: try options.connection(), app: try app.required())
        do throws(GatewayFailure) {
            let answer = try await service.document(
                "POST", "\(service.base)/changes", body: document, contentType: mediaType)
            try Terminal.print(answer.value, as: options.form, text: Self.text)
        } catch {
            throw Terminal.fail(error, as: options.form)
        }
    }

    static func text(_ taken: ChangesTaken) -> String {
        var text = "accepted \(taken.accepted)"
        if taken.duplicates > 0 { text += ", \(taken.duplicates) duplicates" }
        if taken.unmatched > 0 { text += ", \(taken.unmatched) matched no rule" }
        if taken.broad > 0 { text += ", \(taken.broad) broad (attribute missing)" }
        return text + ", sequence \(taken.sequence)"
    }
}
