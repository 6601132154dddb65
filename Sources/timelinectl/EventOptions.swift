import ArgumentParser
import Foundation
import WidgetModel

extension Change.Operation: ExpressibleByArgument {}
extension Urgency: ExpressibleByArgument {}

/// A data change, stated by options or by a file of events.
struct EventOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The changed entity's type.", valueName: "type"))
    var entity: String?

    @Option(help: "The changed entity's id. Default: all entities of the type.")
    var id: String?

    @Option(help: "insert, update or delete.")
    var operation: Change.Operation = .update

    @Option(
        name: .customLong("property"),
        help: ArgumentHelp(
            "A changed property. Default: any. Repeatable.", valueName: "name")
    )
    var properties: [String] = []

    @Option(
        name: .customLong("attribute"),
        help: ArgumentHelp(
            "A value that rules can bind to. Repeat a name for several values.",
            valueName: "name=value"))
    var attributes: [String] = []

    @Option(help: "very-low, low, normal or high.")
    var urgency: Urgency = .normal

    @Option(help: "The event's source; with the event id it identifies the event.")
    var source = "timelinectl"

    @Option(name: .customLong("event-id"), help: "The event's id. Default: a new one.")
    var eventID: String?

    @Option(help: ArgumentHelp("CloudEvents in JSON, or - for standard input.", valueName: "file"))
    var file: String?

    func validate() throws {
        if file != nil, id != nil || !properties.isEmpty || !attributes.isEmpty || eventID != nil {
            throw ValidationError("--file cannot be combined with other event options")
        }
        _ = try attributeValues()
    }

    /// The document to send, and its media type. Throws `ValidationError` if a file cannot be read
    /// or holds no events.
    func document() throws -> (bytes: [UInt8], mediaType: String) {
        guard let file else {
            return (try event(now: Date()).json.serialized, "application/cloudevents+json")
        }
        let bytes = try Terminal.read(file)
        return (bytes, try Self.mediaType(of: bytes))
    }

    /// The event that the options state. Throws `ValidationError` if an attribute is not
    /// `name=value`.
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

    /// The media type of a file of events. Throws `ValidationError` if it holds none.
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
        default: throw ValidationError("the file contains \(value.shape), not events")
        }
    }
}
