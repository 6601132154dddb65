import ArgumentParser
import Foundation
import GatewayDocuments
import TimelineRuntime
import WidgetModel

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

            If a change matches no rule of the catalog, a hint says which name may be misspelt; \
            with --strict the exit code is then 1, although the change is accepted.

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

    @Flag(help: "Exit with 1 if a change matches no rule.")
    var strict = false

    /// Requires either a change or a file of them. Not done by `validate()`, which runs before an
    /// unknown option is reported.
    func requireEvents() throws {
        guard (stated.file == nil) != (stated.entity == nil) else {
            throw ValidationError("give either --entity or --file")
        }
    }

    func run() async throws {
        try requireEvents()
        let (document, mediaType) = try stated.document()
        let service = GatewayService(connection: try options.connection(), app: try app.required())
        do throws(GatewayFailure) {
            let answer = try await service.document(
                "POST", "\(service.base)/changes", body: document, contentType: mediaType)
            try Terminal.print(answer.value, as: options.form, text: Self.text)
            guard (answer.value.objectValue?["unmatched"]?.integerValue ?? 0) > 0 else { return }
        } catch {
            throw Terminal.fail(error, as: options.form)
        }
        await complainOfNames(document, mediaType, service)
        if strict { throw ExitStatus.refused }
    }

    /// Prints which names of the changes may be misspelt, if the gateway can tell.
    private func complainOfNames(
        _ document: [UInt8], _ mediaType: String, _ service: GatewayService
    ) async {
        let answer = try? await service.document(
            "POST", "\(service.base)/changes/explain", body: document, contentType: mediaType)
        guard let value = answer?.value, let explained = try? ExplainedEvents(decoding: value)
        else { return }
        for hint in Self.hints(explained) { Terminal.complain(hint) }
    }

    /// Returns one line for each entity that matches no rule.
    static func hints(_ explained: ExplainedEvents) -> [String] {
        var hints: [String] = []
        for change in explained.events where change.unmatched {
            let name = [change.entity, change.entityID].compactMap { $0 }.joined(separator: " ")
            let reason = change.hint ?? "no rule of the catalog matches this change"
            let line = TextBlock.line("\(name): \(reason)")
            if !hints.contains(line) { hints.append(line) }
        }
        return hints
    }

    static func text(_ taken: ChangesTaken) -> String {
        var text = "accepted \(taken.accepted)"
        if taken.duplicates > 0 { text += ", \(taken.duplicates) duplicates" }
        if taken.unmatched > 0 { text += ", \(taken.unmatched) matched no rule" }
        if taken.broad > 0 { text += ", \(taken.broad) broad (attribute missing)" }
        return text + ", sequence \(taken.sequence)"
    }
}
