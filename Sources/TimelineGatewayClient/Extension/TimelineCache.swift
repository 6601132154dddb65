import Foundation
import WidgetModel

/// The timelines that an app and its extension have built, each with the cursor up to which it
/// includes every change, and what the app's processes know of the gateway.
///
/// A widget has two files. Its marker, with the cursor, can be read on a locked device: without it
/// a push would ask for everything. Its timeline has the app's own data protection.
///
/// Several processes may use a directory at the same time. A file is replaced as a whole, and a
/// marker names the one timeline that its cursor is true for, so that whichever process wrote last,
/// no cursor is ahead of its timeline.
struct TimelineCache: Sendable {
    /// The largest timeline that is stored, bytes. Larger ones are built at each request.
    static let timelineBytesMax = 256 * 1024
    /// The largest file that is read, bytes. A registration has thousands of widgets at most.
    private static let fileBytesMax = 4 * 1024 * 1024

    /// The options for a file that can be read on a locked device, once it was unlocked since its
    /// start. Platforms without data protection ignore them.
    static var readableWhileLocked: Data.WritingOptions {
        [.atomic, .completeFileProtectionUntilFirstUserAuthentication]
    }

    /// A stored timeline.
    struct Kept: Equatable {
        /// The cursor up to which its data includes every change; `nil` if unknown.
        var cursor: Cursor?
        /// The timeline in JSON; `nil` if it was too large to be stored, or cannot be read.
        var timeline: String?
    }

    let directory: URL
    /// Writes a file as a whole; `false` when it cannot be written.
    var write: @Sendable (Data, URL, Data.WritingOptions) -> Bool = {
        (try? $0.write(to: $1, options: $2)) != nil
    }

    // MARK: Timelines

    /// Returns the stored timeline of a widget; `nil` when there is none.
    func kept(_ widget: ConfiguredWidget) -> Kept? {
        guard let marker = marker(of: widget) else { return nil }
        var kept = Kept(cursor: Self.cursor(marker["cursor"]))
        if let hash = marker["timeline"]?.stringValue,
            let bytes = bytes(of: timelineFile(of: widget)), Self.hash(bytes) == hash
        {
            kept.timeline = String(decoding: bytes, as: UTF8.self)
        }
        return kept
    }

    /// Stores a timeline. If it cannot be written, it is built again at the next request.
    func keep(_ kept: Kept, of widget: ConfiguredWidget) {
        var marker: JSONObject = ["widget": widget.normalized.json]
        if let cursor = kept.cursor { marker["cursor"] = .string(cursor.text) }
        if let timeline = kept.timeline, timeline.utf8.count <= Self.timelineBytesMax,
            store(Array(timeline.utf8), in: timelineFile(of: widget), .atomic)
        {
            marker["timeline"] = .string(Self.hash(Array(timeline.utf8)))
        }
        store(marker, in: markerFile(of: widget))
    }

    /// Sets the cursor of a stored timeline that has this one, and stays as it is.
    func move(_ widget: ConfiguredWidget, from built: Cursor?, to cursor: Cursor?) {
        guard var marker = marker(of: widget), Self.cursor(marker["cursor"]) == built else {
            return
        }
        marker["cursor"] = cursor.map { JSONValue.string($0.text) }
        store(marker, in: markerFile(of: widget))
    }

    /// Whether a timeline of the widget was built, stored or not.
    func isBuilt(_ widget: ConfiguredWidget) -> Bool { marker(of: widget) != nil }

    /// Returns the cursor of a stored timeline; `nil` when there is none.
    func cursor(of widget: ConfiguredWidget) -> Cursor? {
        Self.cursor(marker(of: widget)?["cursor"])
    }

    /// The cursor up to which everything registered is current: what is stored here, and what the
    /// system was told to make. `nil` when it is not known of all.
    var lowestCursor: Cursor? {
        guard var lowest = systemCursor else { return nil }
        for widget in registered?.widgets ?? [] {
            guard let marker = marker(of: widget) else { continue }
            guard let cursor = Self.cursor(marker["cursor"]) else { return nil }
            lowest = min(lowest, cursor)
        }
        return lowest
    }

    // MARK: The registration

    /// The widgets, sets and controls of the registration that the gateway accepted last, without
    /// addresses, whose tokens are not stored. `nil` when there is none.
    var registered: ClientRegistration? {
        guard let stored = object(in: registrationFile)?["registration"]?.objectValue else {
            return nil
        }
        var document: JSONObject = ["platform": "any"]
        for member in ["widgets", "recommendations"] { document[member] = stored[member] }
        document["controls"] = .array(
            (stored["controls"]?.arrayValue ?? []).map { control in
                guard var object = control.objectValue else { return control }
                object["delivery"] = nil
                return .object(object)
            })
        return try? ClientRegistration.read(.object(document), limits: .archive).registration
    }

    /// The gateway's digest of that registration.
    var digest: String? { object(in: registrationFile)?["digest"]?.stringValue }

    /// Stores a registration, and removes the timelines of widgets that it does not contain.
    func keep(registration: JSONValue, digest: String?, of widgets: [ConfiguredWidget]) {
        var object: JSONObject = ["registration": registration]
        if let digest { object["digest"] = .string(digest) }
        store(object, in: registrationFile)
        let names = Set(
            widgets.flatMap { [markerFile(of: $0), timelineFile(of: $0)] }.map(\.lastPathComponent))
        for file in widgetFiles where !names.contains(file.lastPathComponent) {
            try? FileManager.default.removeItem(at: file)
        }
    }

    /// Removes what is known of the gateway's log: the gateway does not know this client.
    func clear() {
        for file in widgetFiles + [registrationFile, stateFile] {
            try? FileManager.default.removeItem(at: file)
        }
    }

    // MARK: What else is known

    /// The cursor up to which the system was told to make what no timeline is stored for: controls,
    /// the relevance of widgets, and timelines that were never built.
    var systemCursor: Cursor? {
        get { Self.cursor(object(in: stateFile)?["system"]) }
        nonmutating set { setState("system", newValue) }
    }

    /// The lowest cursor whose acknowledgement covers everything that the gateway named; `nil` when
    /// all of it is acknowledged.
    var owedCursor: Cursor? {
        get { Self.cursor(object(in: stateFile)?["owed"]) }
        nonmutating set { setState("owed", newValue) }
    }

    private func setState(_ member: String, _ cursor: Cursor?) {
        var state = object(in: stateFile) ?? JSONObject()
        state[member] = cursor.map { JSONValue.string($0.text) }
        store(state, in: stateFile)
    }

    /// The address of the app's ordinary push token.
    var appAddress: DeliveryAddress? {
        get {
            guard let stored = object(in: addressFile)?["address"] else { return nil }
            let document: JSONValue = ["platform": "any", "delivery": [stored]]
            return try? ClientRegistration.read(document, limits: .archive)
                .registration.delivery.first
        }
        nonmutating set {
            guard let address = newValue else { return }
            store(["address": address.json(maskingTokens: false)], in: addressFile)
        }
    }

    /// The Live Activities, and the addresses to start others, as a part of a registration.
    var live: ClientRegistration {
        get {
            let stored = object(in: liveFile).flatMap {
                try? ClientRegistration.read(.object($0), limits: .archive).registration
            }
            return stored ?? ClientRegistration(platform: "any", delivery: [])
        }
        nonmutating set {
            store(newValue.json(maskingTokens: false).objectValue ?? JSONObject(), in: liveFile)
        }
    }

    // MARK: Files

    private var registrationFile: URL { directory.appending(path: "registration.json") }
    private var stateFile: URL { directory.appending(path: "state.json") }
    private var addressFile: URL { directory.appending(path: "address.json") }
    private var liveFile: URL { directory.appending(path: "activities.json") }

    private var widgetFiles: [URL] {
        let files = try? FileManager.default.contentsOfDirectory(
            at: directory, includingPropertiesForKeys: nil)
        return (files ?? []).filter {
            $0.lastPathComponent.hasPrefix("marker-") || $0.lastPathComponent.hasPrefix("timeline-")
        }
    }

    private func markerFile(of widget: ConfiguredWidget) -> URL { file("marker", of: widget) }
    private func timelineFile(of widget: ConfiguredWidget) -> URL { file("timeline", of: widget) }

    /// Returns a file of a widget. Its name is a hash; the marker also contains the widget's
    /// identity.
    private func file(_ name: String, of widget: ConfiguredWidget) -> URL {
        directory.appending(path: "\(name)-\(Self.hash(widget.normalized.json.serialized)).json")
    }

    private func marker(of widget: ConfiguredWidget) -> JSONObject? {
        guard let marker = object(in: markerFile(of: widget)),
            marker["widget"] == widget.normalized.json
        else { return nil }
        return marker
    }

    private static func hash(_ bytes: [UInt8]) -> String { String(FNV1a(bytes).value, radix: 16) }

    private static func cursor(_ value: JSONValue?) -> Cursor? {
        value?.stringValue.flatMap { Cursor(text: $0) }
    }

    private func object(in file: URL) -> JSONObject? {
        bytes(of: file).flatMap { try? JSONValue(parsing: $0) }?.objectValue
    }

    private func bytes(of file: URL) -> [UInt8]? {
        guard let handle = try? FileHandle(forReadingFrom: file) else { return nil }
        defer { try? handle.close() }
        guard let data = try? handle.read(upToCount: Self.fileBytesMax + 1),
            data.count <= Self.fileBytesMax
        else { return nil }
        return [UInt8](data)
    }

    private func store(_ object: JSONObject, in file: URL) {
        _ = store(JSONValue.object(object).serialized, in: file, Self.readableWhileLocked)
    }

    private func store(_ bytes: [UInt8], in file: URL, _ options: Data.WritingOptions) -> Bool {
        try? FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true)
        return write(Data(bytes), file, options)
    }
}
