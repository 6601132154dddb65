import ArgumentParser
import Foundation
import TimelineRuntime

/// The widgets to show, and the person's settings that change how they look.
struct PictureOptions: ParsableArguments {
    @Argument(help: "The client's archive, or the file of a drawn preview.")
    var directory: String

    @Option(help: "Only widgets of this kind, or Live Activities of this type.")
    var kind: String?

    @Option(help: "Only this family, such as systemSmall, or presentation, such as compact.")
    var family: String?

    @Option(help: "The time, such as 2026-01-31T12:00:00Z. Default: now.")
    var at: String?

    @Option(help: "Language of dates in pictures, such as de_DE or ar. Default: the client's.")
    var locale: String?

    @Option(name: .customLong("dynamic-type"), help: "Size of text. Default: the client's.")
    var typeSize: DynamicTypeSize?

    @Option(help: "Tint of the accented and vibrant modes: a name such as orange, or #rrggbb.")
    var tint: String?

    @Flag(help: "Show an update under way: content marked as invalidatable looks pending.")
    var pending = false

    func validate() throws { _ = try settings() }

    func settings() throws -> PictureSettings {
        var settings = PictureSettings(isPending: pending)
        if let locale, !(Locale(identifier: locale).language.languageCode?.isISOLanguage ?? false) {
            throw ValidationError("--locale: `\(locale)` is no language such as de, de_DE or ar")
        }
        if let tint {
            settings.tint = Ink(Color(tint), isDark: true)
            guard settings.tint != nil else {
                throw ValidationError("--tint: `\(tint)` is no color such as orange, or #rrggbb")
            }
        }
        if let at {
            guard let date = try? Date(at, strategy: .iso8601) else {
                throw ValidationError("--at must be a date such as 2026-01-31T12:00:00Z")
            }
            settings.now = date
        }
        return settings
    }

    /// - Throws: `ValidationError` if there is no readable client archive, or no such widget.
    func selection() throws -> PlacedSelection {
        var placed = try PlacedSelection(
            directory, kind: kind, family: family, at: settings().now)
        placed.device.locale = locale.map { Locale(identifier: $0) } ?? placed.device.locale
        placed.device.dynamicTypeSize = typeSize ?? placed.device.dynamicTypeSize
        return placed
    }
}

extension DynamicTypeSize: ExpressibleByArgument {}

/// The placed widgets of an archive that a command is about, and the presentations of activities.
struct PlacedSelection {
    let archive: ClientArchive
    /// The app and the client, or the file of a preview.
    let title: String
    var device: WidgetDevice
    let widgets: [ClientArchive.PlacedWidget]
    /// The placed controls that were drawn; none where a family is chosen, because they have none.
    let controls: [(control: PlacedControl, node: WidgetNode)]
    /// The only timeline of a preview's file; `nil` for an archive.
    private let preview: TimelineArchive?

    /// - Throws: `ValidationError` if there is no readable client archive, or no such widget.
    init(_ directory: String, kind: String?, family: String?, at date: Date = .now) throws {
        archive = ClientArchive(directory: directory)
        var placed: [ClientArchive.PlacedWidget]
        var isFolder: ObjCBool = true
        _ = FileManager.default.fileExists(atPath: directory, isDirectory: &isFolder)
        if !isFolder.boolValue {
            guard let timeline = try? TimelineArchive(serialized: Terminal.read(directory)) else {
                throw ValidationError("\(directory) is not the file of a drawn preview")
            }
            let place = WidgetContextTable.places[timeline.widget.family]?.first
            (preview, title, placed) = (timeline, directory, [.init(timeline.widget)])
            device = WidgetDevice(place?.platform ?? .iOS)
        } else {
            guard let client = archive.client() else {
                throw ValidationError("\(directory) is not a client archive")
            }
            guard let known = client.device else {
                throw ValidationError(
                    "\(directory) belongs to a client that has not registered a device yet")
            }
            (preview, title, placed) = (nil, "\(client.app), \(client.client)", client.widgets)
            device = known
        }
        for activity in archive.activities.list where activity.phase(at: date) != .dismissed {
            let isStale = activity.phase(at: date) == .stale
            for presentation in ActivityPresentation.allCases
            where presentation.exists(on: device) {
                placed.append(.init(activity.widget(in: presentation), isStale: isStale))
            }
        }
        let drawn = archive.drawnControls
        let kinds = Set(placed.map(\.widget.kind) + drawn.map { $0.control.kind }).sorted()
        if let kind, !kinds.contains(kind) {
            let hint = kind.nearest(of: kinds).map { "; did you mean `\($0)`?" } ?? ""
            throw ValidationError("--kind: no widget of the kind `\(kind)` is placed\(hint)")
        }
        controls = drawn.filter { [nil, $0.control.kind].contains(kind) && family == nil }
        let ofKind = placed.filter { kind == nil || $0.widget.kind == kind }
        widgets = ofKind.filter { family == nil || $0.widget.family.rawValue == family }
        if let family, widgets.isEmpty {
            let others = Set(ofKind.map(\.widget.family.rawValue)).sorted()
            let hint = others.isEmpty ? "" : ", only \(others.joined(separator: ", "))"
            throw ValidationError("--family: no `\(family)` is placed\(hint)")
        }
    }

    /// Returns the timeline of a widget; `nil` when there is none.
    func timeline(of widget: WidgetInfo) throws(TimelineArchive.Fault) -> TimelineArchive? {
        if let preview { return preview }
        return try archive.timeline(of: widget)
    }

    /// Returns the traits of a widget that affect its display.
    func traits(of widget: WidgetInfo) -> WidgetTraits {
        preview?.traits ?? archive.traits(of: widget)
    }
}

extension WidgetLocation {
    /// - Throws: `ValidationError` for a name that no table has.
    init(stated name: String) throws {
        guard let known = Self.known[name] else {
            let names = Self.known.keys.sorted().joined(separator: ", ")
            throw ValidationError("--location: `\(name)` is none of \(names)")
        }
        self = known
    }
}
