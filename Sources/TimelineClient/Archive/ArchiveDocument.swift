import WidgetModel

/// How far one client is, and what the gateway knows of it: what `state.json` of a
/// ``ClientArchive`` holds.
package struct ArchiveDocument: Sendable, Equatable {
    /// The version of the document's form; another one is not read.
    static let version: Int64 = 2

    /// The app and client it belongs to; another's archive is not read.
    package var owner: String
    /// How far the client is.
    package var state: EngineState

    /// A document.
    package init(owner: String, state: EngineState = EngineState()) {
        self.owner = owner
        self.state = state
    }

    /// The document; equal archives give equal bytes.
    package var json: JSONValue {
        var object: JSONObject = [
            "version": .integer(Self.version), "owner": .string(owner),
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

    /// Reads a document; `nil` when it is of another owner or version, or not of this form. What
    /// is lost with it is only time: the client registers and rebuilds all.
    package init?(_ value: JSONValue, owner: String) {
        self.init(value)
        guard self.owner == owner else { return nil }
    }

    /// Reads a document of whatever owner; `nil` when it is of another version, or not of this form.
    package init?(_ value: JSONValue) {
        guard let object = value.objectValue, object["version"]?.integerValue == Self.version,
            let owner = object["owner"]?.stringValue
        else { return nil }
        self.init(owner: owner)
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
