import ArgumentParser
import Foundation
import TimelineClient
import WidgetModel

extension Change.Operation: ExpressibleByArgument {}
extension Urgency: ExpressibleByArgument {}

/// Announces data changes.
struct PostCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "post",
        abstract: "Announce a data change.",
        discussion: """
            Post a change once clients can read the new data. Either state one with options, or \
            send a file of CloudEvents in JSON: an object is one event, an array a batch that is \
            taken whole or not at all. Needs a token with the scope changes:write.

            Without --event-id each post is a new event. With it, posting again what was posted \
            before changes nothing, so a script can repeat it after a failure.

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

    @Option(help: ArgumentHelp("The changed entity's type.", valueName: "type"))
    var entity: String?

    @Option(help: "The changed entity's id; without one the change concerns them all.")
    var id: String?

    @Option(help: "insert, update or delete.")
    var operation: Change.Operation = .update

    @Option(
        name: .customLong("property"),
        help: ArgumentHelp(
            "A property that changed; none means any. Repeatable.", valueName: "name")
    )
    var properties: [String] = []

    @Option(
        name: .customLong("attribute"),
        help: ArgumentHelp(
            "A value rules may bind to. Repeat a name to state several values.",
            valueName: "name=value"))
    var attributes: [String] = []

    @Option(help: "very-low, low, normal or high.")
    var urgency: Urgency = .normal

    @Option(help: "Who announces it; with the event id the event's identity.")
    var source = "timelinectl"

    @Option(name: .customLong("event-id"), help: "The event's id; a new one when left out.")
    var eventID: String?

    @Option(help: ArgumentHelp("CloudEvents in JSON, or - for standard input.", valueName: "file"))
    var file: String?

    func validate() throws {
        guard (file == nil) != (entity == nil) else {
            throw ValidationError("state either --entity or --file")
        }
        if file != nil, id != nil || !properties.isEmpty || !attributes.isEmpty || eventID != nil {
            throw ValidationError("with --file the events say everything themselves")
        }
        _ = try attributeValues()
    }

    func run() async throws {
        let document: [UInt8]
        var mediaType = "application/cloudevents+json"
        if let file {
            document = try Terminal.read(file)
            mediaType = try Self.mediaType(of: document)
        } else {
            document = try event(now: Date()).json.serialized
        }
        let service = GatewayService(connection: try options.connection(), app: try app.required())
        do throws(GatewayFailure) {
            let answer = try await service.document(
                "POST", "\(service.base)/changes", body: document, contentType: mediaType)
            Terminal.print(answer.value, as: options.form) { Self.text(answer.value) }
        } catch {
            throw Terminal.fail(error, as: options.form)
        }
    }

    /// The event the options state.
    ///
    /// - Throws: `ValidationError` when an attribute is not `name=value`.
    func event(now: Date) throws -> CloudEvent {
        let change = Change(
            entity: entity ?? "", id: id, operation: operation, properties: properties,
            attributes: try attributeValues(), urgency: urgency)
        return CloudEvent(
            source: source, id: eventID ?? UUID().uuidString.lowercased(),
            time: now.ISO8601Format(), change: change)
    }

    private func attributeValues() throws -> [String: [String]] {
        var values: [String: [String]] = [:]
        for attribute in attributes {
            guard let equals = attribute.firstIndex(of: "="), equals > attribute.startIndex else {
                throw ValidationError("\(attribute) is not name=value")
            }
            values[String(attribute[..<equals]), default: []].append(
                String(attribute[attribute.index(after: equals)...]))
        }
        return values
    }

    /// The media type of a file of events.
    ///
    /// - Throws: `ValidationError` when it holds none.
    static func mediaType(of document: [UInt8]) throws -> String {
        let value: JSONValue
        do throws(JSONFault) {
            value = try JSONValue(parsing: document)
        } catch {
            throw ValidationError("the file is not JSON: \(error)")
        }
        switch value {
        case .array: return "application/cloudevents-batch+json"
        case .object: return "application/cloudevents+json"
        default: throw ValidationError("the file holds \(value.shape), not events")
        }
    }

    static func text(_ answer: JSONValue) -> String {
        let object = answer.objectValue ?? [:]
        func count(_ name: String) -> Int64 { object[name]?.integerValue ?? 0 }
        var text = "accepted \(count("accepted"))"
        if count("duplicates") > 0 { text += ", \(count("duplicates")) posted before" }
        if count("unmatched") > 0 { text += ", \(count("unmatched")) hit no rule" }
        if count("broad") > 0 { text += ", \(count("broad")) broad for lack of an attribute" }
        return text + ", sequence \(count("sequence"))"
    }
}
