import Foundation
import WidgetModel
import WidgetViews

extension ClientArchive {
    /// The largest timeline that is kept, in bytes of its serialized form.
    static let timelineBytesMax = 16 * 1024 * 1024

    /// Returns the content of a widget at `date` in an environment: the entry of its archived
    /// timeline, or else the placeholder, as they were drawn. Runs no code of the app. Returns
    /// `nil` when neither was drawn for this context.
    public func node(
        of widget: WidgetInfo, at date: Date, in environment: WidgetEnvironment
    ) -> WidgetNode? {
        if !environment.redactionReasons.contains(.placeholder),
            let node = (try? timeline(of: widget))?.node(at: date, in: environment)
        {
            return node
        }
        return (try? placeholder(of: widget))?.node(at: date, in: environment)
    }

    /// Returns the archived timeline of a widget; `nil` when there is none.
    ///
    /// - Throws: ``TimelineArchive/Fault``. The timeline is then rebuilt.
    public func timeline(
        of widget: WidgetInfo
    ) throws(TimelineArchive.Fault) -> TimelineArchive? {
        try archive(timelinePath(widget), of: widget)
    }

    /// Whether a file exists for the timeline of a widget, readable at the moment or not.
    func hasTimeline(of widget: WidgetInfo) -> Bool { access(timelinePath(widget), F_OK) == 0 }

    func hasPlaceholder(of widget: WidgetInfo) -> Bool {
        access(placeholderPath(widget), F_OK) == 0
    }

    /// The widgets with a readable placeholder, in the order of their file names.
    var placeholderWidgets: [WidgetInfo] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: placeholders)) ?? []
        return files.sorted().compactMap { file in
            AtomicFile.read(placeholders + "/" + file, bytesMax: Self.timelineBytesMax)
                .flatMap { try? TimelineArchive(serialized: $0).widget }
        }
    }

    /// Returns the archived placeholder of a widget: a timeline of one entry whose date has always
    /// passed; `nil` when there is none.
    ///
    /// - Throws: ``TimelineArchive/Fault``.
    public func placeholder(
        of widget: WidgetInfo
    ) throws(TimelineArchive.Fault) -> TimelineArchive? {
        try archive(placeholderPath(widget), of: widget)
    }

    /// Returns the traits that a placed widget declares and that affect its display. They are
    /// archived with its placeholder, which no lock hides. Returns default traits when there is no
    /// placeholder.
    public func traits(of widget: WidgetInfo) -> WidgetTraits {
        (try? placeholder(of: widget))?.traits ?? WidgetTraits()
    }

    /// Replaces the timeline of a widget. Throws ``Failure``; the timeline saved before then
    /// remains.
    package func save(timeline archive: TimelineArchive) throws(Failure) {
        try save(archive, timelinePath(archive.widget))
    }

    /// Replaces the placeholder of a widget, unless it is unchanged. Throws ``Failure``.
    package func save(placeholder archive: TimelineArchive) throws(Failure) {
        guard (try? placeholder(of: archive.widget)) != archive else { return }
        try save(archive, placeholderPath(archive.widget))
    }

    package func keep(only widgets: Set<WidgetInfo>) {
        let names = Set(widgets.map(Self.name))
        for directory in [timelines, placeholders] {
            let files = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
            for file in files where !names.contains(file) {
                // A file that cannot be removed is harmless: it belongs to no placed widget, so it
                // is never shown.
                _ = unlink(directory + "/" + file)
            }
        }
    }

    package func remove(_ widget: WidgetInfo) {
        _ = unlink(timelinePath(widget))
        _ = unlink(placeholderPath(widget))
    }

    func timelinePath(_ widget: WidgetInfo) -> String { timelines + "/" + Self.name(widget) }

    func placeholderPath(_ widget: WidgetInfo) -> String {
        placeholders + "/" + Self.name(widget)
    }

    private var timelines: String { directory + "/timelines" }
    private var placeholders: String { directory + "/placeholders" }

    private func save(_ archive: TimelineArchive, _ path: String) throws(Failure) {
        let bytes = archive.serialized
        guard bytes.count <= Self.timelineBytesMax else {
            throw Failure("the timeline is larger than \(Self.timelineBytesMax) bytes")
        }
        try replace(path, with: bytes)
    }

    private func archive(
        _ path: String, of widget: WidgetInfo
    ) throws(TimelineArchive.Fault) -> TimelineArchive? {
        guard access(path, F_OK) == 0 else { return nil }
        guard let bytes = AtomicFile.read(path, bytesMax: Self.timelineBytesMax) else {
            throw .corrupt
        }
        let archive = try TimelineArchive(serialized: bytes)
        // File names are hashes and may collide, but a widget must never show another's content.
        guard archive.widget == widget else { throw .corrupt }
        return archive
    }

    /// Returns a file name: a 128-bit hash, which does not reveal the configuration that a person
    /// chose.
    private static func name(_ widget: WidgetInfo) -> String {
        let bytes = JSONValue.object(widget.archived).serialized
        let halves = [FNV1a(bytes), FNV1a([0] + bytes)].map { hash in
            let text = String(hash.value, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        return halves.joined() + ".json"
    }
}
