import ArgumentParser
import Foundation
import TimelineRuntime

/// The widgets to show, and the person's settings that change how they look.
struct PictureOptions: ParsableArguments {
    @Argument(help: "The client's archive.")
    var directory: String

    @Option(help: "Only widgets of this kind.")
    var kind: String?

    @Option(help: "Only widgets of this family, such as systemSmall.")
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
        var placed = try PlacedSelection(directory, kind: kind, family: family)
        placed.device.locale = locale.map { Locale(identifier: $0) } ?? placed.device.locale
        placed.device.dynamicTypeSize = typeSize ?? placed.device.dynamicTypeSize
        return placed
    }
}

extension DynamicTypeSize: ExpressibleByArgument {}

/// The placed widgets of an archive that a command is about.
struct PlacedSelection {
    let archive: ClientArchive
    let client: ClientArchive.Client
    var device: WidgetDevice
    let widgets: [ClientArchive.PlacedWidget]

    /// - Throws: `ValidationError` if there is no readable client archive, or no such widget.
    init(_ directory: String, kind: String?, family: String?) throws {
        archive = ClientArchive(directory: directory)
        guard let client = archive.client() else {
            throw ValidationError("\(directory) is not a client archive")
        }
        guard let device = client.device else {
            throw ValidationError(
                "\(directory) belongs to a client that has not registered a device yet")
        }
        self.client = client
        self.device = device
        let kinds = Set(client.widgets.map(\.widget.kind)).sorted()
        if let kind, !kinds.contains(kind) {
            let hint = kind.nearest(of: kinds).map { "; did you mean `\($0)`?" } ?? ""
            throw ValidationError("--kind: no widget of the kind `\(kind)` is placed\(hint)")
        }
        let ofKind = client.widgets.filter { kind == nil || $0.widget.kind == kind }
        widgets = ofKind.filter { family == nil || $0.widget.family.rawValue == family }
        if let family, widgets.isEmpty {
            let others = Set(ofKind.map(\.widget.family.rawValue)).sorted()
            throw ValidationError(
                "--family: no `\(family)` is placed, only \(others.joined(separator: ", "))")
        }
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
