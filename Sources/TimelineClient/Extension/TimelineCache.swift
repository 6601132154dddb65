import Foundation
import WidgetModel

/// The timelines that an app and its extension have built, each with the cursor up to which it
/// includes every change: one small file for each configured widget.
///
/// Several processes may use a directory at the same time. A file is replaced as a whole and holds
/// a cursor together with its timeline, so that whichever process wrote last, no cursor is ahead of
/// its timeline.
struct TimelineCache: Sendable {
    /// The largest timeline that is stored, bytes. Larger ones are built at each request.
    static let timelineBytesMax = 256 * 1024
    /// The largest file that is read, bytes: a timeline with JSON escapes, and the widget's
    /// identity.
    private static let fileBytesMax = 3 * timelineBytesMax

    /// A stored timeline.
    struct Kept: Equatable {
        /// The cursor up to which its data includes every change; `nil` if unknown.
        var cursor: Cursor?
        /// The timeline in JSON; `nil` if it was too large to be stored.
        var timeline: String?
    }

    private let directory: URL

    init(directory: URL) { self.directory = directory }

    /// Returns the stored timeline of a widget; `nil` when there is none that can be read.
    func kept(_ widget: ConfiguredWidget) -> Kept? {
        guard let object = object(in: file(of: widget)), object["widget"] == Self.identity(widget)
        else { return nil }
        return Self.kept(object)
    }

    /// Stores a timeline. If it cannot be written, it is built again at the next request.
    func keep(_ kept: Kept, of widget: ConfiguredWidget) {
        var object: JSONObject = ["widget": Self.identity(widget)]
        if let cursor = kept.cursor { object["cursor"] = .string(cursor.text) }
        if let timeline = kept.timeline, timeline.utf8.count <= Self.timelineBytesMax {
            object["timeline"] = .string(timeline)
        }
        write(object, to: file(of: widget))
    }

    /// The registration that the gateway accepted last; `nil` when there is none.
    var registration: JSONValue? {
        object(in: registrationFile)?["registration"]
    }

    /// The widgets of the last accepted registration.
    var registeredWidgets: [ConfiguredWidget]? {
        guard let widgets = registration?.objectValue?["widgets"] else { return nil }
        // The push tokens of the document are masked, so it cannot be read as a whole.
        return try? ClientRegistration.read(
            ["platform": "any", "widgets": widgets], limits: .archive
        ).registration.widgets
    }

    /// The gateway's digest of that registration.
    var digest: String? { object(in: registrationFile)?["digest"]?.stringValue }

    /// Stores a registration, and removes the timelines of widgets that it does not contain.
    func keep(registration: JSONValue, digest: String?, of widgets: [ConfiguredWidget]) {
        var object: JSONObject = ["registration": registration]
        if let digest { object["digest"] = .string(digest) }
        write(object, to: registrationFile)
        let names = Set(widgets.map { file(of: $0).lastPathComponent })
        for file in timelineFiles where !names.contains(file.lastPathComponent) {
            try? FileManager.default.removeItem(at: file)
        }
    }

    /// Removes all files: the gateway does not know this client.
    func clear() {
        for file in timelineFiles + [registrationFile] {
            try? FileManager.default.removeItem(at: file)
        }
    }

    /// Returns the lowest cursor of these widgets; `nil` when one of them has none.
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

    /// Returns the file of a widget. Its name is a hash; the file also contains the widget's
    /// identity.
    private func file(of widget: ConfiguredWidget) -> URL {
        let hash = FNV1a(Self.identity(widget).serialized).value
        return directory.appending(path: "timeline-\(String(hash, radix: 16)).json")
    }

    /// Returns the identity of a configured widget, which excludes its count.
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
