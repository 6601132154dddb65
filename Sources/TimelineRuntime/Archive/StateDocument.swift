import WidgetModel
import WidgetViews

/// The state of one client: its progress and its registration. Stored as `state.json` of a
/// ``ClientArchive``.
package struct StateDocument: Sendable, Equatable {
    /// The version of the document's format. Documents of other versions are not read.
    static let version: Int64 = 2

    /// The app and client that own the archive. The archive of another owner is not read.
    package var owner: String
    /// The locale and text size of the drawn timelines.
    var appearance = "en large"
    package var state = EngineState()

    /// The document as JSON. Equal documents encode to equal bytes.
    package var json: JSONValue {
        var object: JSONObject = [
            "version": .integer(Self.version), "owner": .string(owner),
            "appearance": .string(appearance),
        ]
        if let registered = state.registered {
            object["registered"] = registered.json(maskingTokens: false)
        }
        if let digest = state.digest { object["digest"] = .string(digest) }
        if state.mustReadRegistration { object["mustReadRegistration"] = true }
        if let position = state.position { object["cursor"] = .string(position.text) }
        var timelines: [(String, JSONValue)] = []
        var sets: [(String, JSONValue)] = []
        for (item, position) in state.positions {
            var entry: JSONObject = ["cursor": .string(position.cursor.text)]
            if position.awaitsBuild { entry["awaitsBuild"] = true }
            switch item {
            case .recommendations(let kind):
                entry["kind"] = .string(kind)
                sets.append((kind, .object(entry)))
            case .timeline(let info):
                for member in info.archived.members { entry[member.name] = member.value }
                let key = JSONValue.object(entry).text
                timelines.append((key, .object(entry)))
            }
        }
        object["timelines"] = .array(timelines.sorted { $0.0 < $1.0 }.map(\.1))
        object["recommendations"] = .array(sets.sorted { $0.0 < $1.0 }.map(\.1))
        return .object(object)
    }
}

extension StateDocument {
    /// Reads a document. Returns `nil` when it has another version or is malformed. Losing it costs
    /// only time: the client registers again and rebuilds everything.
    package init?(_ value: JSONValue) {
        guard let object = value.objectValue, object["version"]?.integerValue == Self.version,
            let owner = object["owner"]?.stringValue
        else { return nil }
        self.init(owner: owner)
        if let appearance = object["appearance"]?.stringValue { self.appearance = appearance }
        if let document = object["registered"] {
            guard
                let reading = try? ClientRegistration.read(document, limits: .archive)
            else { return nil }
            state.registered = reading.registration
        }
        state.digest = object["digest"]?.stringValue
        state.mustReadRegistration = object["mustReadRegistration"]?.boolValue ?? false
        state.position = object["cursor"]?.stringValue.flatMap { Cursor(text: $0) }
        for entry in object["timelines"]?.arrayValue ?? [] {
            guard let entry = entry.objectValue, let position = Self.position(entry),
                let info = WidgetInfo(archived: entry)
            else { return nil }
            state.positions[.timeline(info)] = position
        }
        for entry in object["recommendations"]?.arrayValue ?? [] {
            guard let entry = entry.objectValue, let position = Self.position(entry),
                let kind = entry["kind"]?.stringValue
            else { return nil }
            state.positions[.recommendations(kind: kind)] = position
        }
    }

    private static func position(_ entry: JSONObject) -> EngineState.Position? {
        guard let cursor = entry["cursor"]?.stringValue.flatMap({ Cursor(text: $0) }) else {
            return nil
        }
        return .init(cursor: cursor, awaitsBuild: entry["awaitsBuild"]?.boolValue ?? false)
    }
}
