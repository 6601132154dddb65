import Foundation
import WidgetModel

/// Where an app and its extension keep what they built, each timeline with the cursor obtained
/// before its data was fetched: one small file for each configured widget.
///
/// Several processes may use one directory at once. A file is replaced as a whole and holds a cursor
/// with what was built after it, so whatever wrote last, no cursor is beyond its timeline.
struct TimelineShelf: Sendable {
    /// Largest timeline that is kept, bytes; larger ones are built whenever they are asked for.
    static let timelineBytesMax = 256 * 1024
    /// Largest file that is read, bytes: a timeline with its quoting, and what it is of.
    private static let fileBytesMax = 3 * timelineBytesMax

    /// A timeline that was built.
    struct Kept: Equatable {
        /// Everything up to here was in the data; `nil` when that is not known.
        var cursor: Cursor?
        /// The timeline in JSON; `nil` when it was too large to be kept.
        var timeline: String?
    }

    private let directory: URL

    init(directory: URL) { self.directory = directory }

    /// What is kept of a widget; `nil` when there is nothing that can be read.
    func kept(_ widget: ConfiguredWidget) -> Kept? {
        guard let object = object(in: file(of: widget)), object["widget"] == Self.identity(widget)
        else { return nil }
        return Self.kept(object)
    }

    /// Keeps what was built. What cannot be written is asked for again.
    func keep(_ kept: Kept, of widget: ConfiguredWidget) {
        var object: JSONObject = ["widget": Self.identity(widget)]
        if let cursor = kept.cursor { object["cursor"] = .string(cursor.text) }
        if let timeline = kept.timeline, timeline.utf8.count <= Self.timelineBytesMax {
            object["timeline"] = .string(timeline)
        }
        write(object, to: file(of: widget))
    }

    /// The registration that the gateway took last; `nil` when there is none.
    var registration: JSONValue? {
        object(in: registrationFile)?["registration"]
    }

    /// The widgets of that registration.
    var registeredWidgets: [ConfiguredWidget]? {
        guard let widgets = registration?.objectValue?["widgets"] else { return nil }
        // Its push tokens are masked: the whole could not be read.
        return try? ClientRegistration.read(
            ["platform": "any", "widgets": widgets], limits: .archive
        ).registration.widgets
    }

    /// The digest that the gateway gave it.
    var digest: String? { object(in: registrationFile)?["digest"]?.stringValue }

    /// Remembers a registration, and forgets the timelines of widgets that are not in it.
    func keep(registration: JSONValue, digest: String?, of widgets: [ConfiguredWidget]) {
        var object: JSONObject = ["registration": registration]
        if let digest { object["digest"] = .string(digest) }
        write(object, to: registrationFile)
        let names = Set(widgets.map { file(of: $0).lastPathComponent })
        for file in timelineFiles where !names.contains(file.lastPathComponent) {
            try? FileManager.default.removeItem(at: file)
        }
    }

    /// Forgets all: the gateway does not know this client.
    func clear() {
        for file in timelineFiles + [registrationFile] {
            try? FileManager.default.removeItem(at: file)
        }
    }

    /// The lowest cursor of all these; `nil` when one of them has none.
    func lowestCursor(of widgets: [ConfiguredWidget]) -> Cursor? {
        var lowest: Cursor?
        for widget in widgets {
            guard let cursor = kept(widget)?.cursor else { return nil }
            lowest = lowest.map { min($0, cursor) } ?? cursor
        }
        return lowest
    }

    // MARK: Files

    private var registrationFile: URL { directory.appending(path: "registration.json") }

    private var timelineFiles: [URL] {
        let files = try? FileManager.default.contentsOfDirectory(
            at: directory, includingPropertiesForKeys: nil)
        return (files ?? []).filter { $0.lastPathComponent.hasPrefix("timeline-") }
    }

    /// Its name is a hash; which widget it is of stands in the file too.
    private func file(of widget: ConfiguredWidget) -> URL {
        let hash = FNV1a(Self.identity(widget).serialized).value
        return directory.appending(path: "timeline-\(String(hash, radix: 16)).json")
    }

    /// What tells configured widgets apart: not how many there are.
    private static func identity(_ widget: ConfiguredWidget) -> JSONValue {
        var widget = widget
        widget.count = 1
        return widget.json
    }

    private static func kept(_ object: JSONObject) -> Kept {
        Kept(
            cursor: object["cursor"]?.stringValue.flatMap { Cursor(text: $0) },
            timeline: object["timeline"]?.stringValue)
    }

    private func object(in file: URL) -> JSONObject? {
        guard let handle = try? FileHandle(forReadingFrom: file) else { return nil }
        defer { try? handle.close() }
        guard let data = try? handle.read(upToCount: Self.fileBytesMax + 1),
            data.count <= Self.fileBytesMax
        else { return nil }
        return (try? JSONValue(parsing: [UInt8](data)))?.objectValue
    }

    private func write(_ object: JSONObject, to file: URL) {
        try? FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true)
        try? Data(JSONValue.object(object).serialized).write(to: file, options: .atomic)
    }
}
