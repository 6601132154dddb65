import Foundation
import WidgetModel

/// What is shown of placed widgets.
extension ClientArchive {
    /// Largest timeline that is kept, bytes, as it is written.
    static let timelineBytesMax = 16 * 1024 * 1024

    /// What is shown of a widget at `date` in an environment: the entry of its archived timeline, or
    /// else the placeholder, as they were drawn; no code of the app runs. `nil` when neither was
    /// drawn for this context.
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

    /// The archived timeline of a widget; `nil` when there is none.
    ///
    /// - Throws: ``TimelineArchive/Fault``; it is built again then.
    public func timeline(
        of widget: WidgetInfo
    ) throws(TimelineArchive.Fault) -> TimelineArchive? {
        try archive(timelinePath(widget), of: widget)
    }

    /// Whether there is a file for the timeline of a widget, be it one that cannot be read now.
    func hasTimeline(of widget: WidgetInfo) -> Bool { access(timelinePath(widget), F_OK) == 0 }

    /// Whether there is a file for the placeholder of a widget.
    func hasPlaceholder(of widget: WidgetInfo) -> Bool {
        access(placeholderPath(widget), F_OK) == 0
    }

    /// The widgets whose placeholder can be read, in the order of their files' names.
    var placeholderWidgets: [WidgetInfo] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: placeholders)) ?? []
        return files.sorted().compactMap { file in
            AtomicFile.read(placeholders + "/" + file, bytesMax: Self.timelineBytesMax)
                .flatMap { try? TimelineArchive(serialized: $0).widget }
        }
    }

    /// The archived placeholder of a widget: a timeline of one entry, which has always begun; `nil`
    /// when there is none.
    ///
    /// - Throws: ``TimelineArchive/Fault``.
    public func placeholder(
        of widget: WidgetInfo
    ) throws(TimelineArchive.Fault) -> TimelineArchive? {
        try archive(placeholderPath(widget), of: widget)
    }

    /// What a placed widget declares that decides what is shown of it, as it was archived with its
    /// placeholder, which no lock hides; that of a widget that declares nothing where there is none.
    public func traits(of widget: WidgetInfo) -> WidgetTraits {
        (try? placeholder(of: widget))?.traits ?? WidgetTraits()
    }

    /// Replaces the timeline of a widget.
    ///
    /// - Throws: ``Failure``; the timeline is then the one saved before.
    package func save(timeline archive: TimelineArchive) throws(Failure) {
        try save(archive, timelinePath(archive.widget))
    }

    /// Replaces the placeholder of a widget, unless it is the same.
    ///
    /// - Throws: ``Failure``.
    package func save(placeholder archive: TimelineArchive) throws(Failure) {
        guard (try? placeholder(of: archive.widget)) != archive else { return }
        try save(archive, placeholderPath(archive.widget))
    }

    /// Removes what is kept of all but these widgets.
    package func keep(only widgets: Set<WidgetInfo>) {
        let names = Set(widgets.map(Self.name))
        for directory in [timelines, placeholders] {
            let files = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
            for file in files where !names.contains(file) {
                // One that cannot be removed is not shown all the same: it is of no placed widget.
                _ = unlink(directory + "/" + file)
            }
        }
    }

    /// Removes the timeline of a widget that is no longer placed.
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
        // Two names may be equal, but no two widgets show the same.
        guard archive.widget == widget else { throw .corrupt }
        return archive
    }

    /// Of 128 bits, and without what a person chose.
    private static func name(_ widget: WidgetInfo) -> String {
        let bytes = JSONValue.object(widget.archived).serialized
        let halves = [FNV1a(bytes), FNV1a([0] + bytes)].map { hash in
            let text = String(hash.value, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        return halves.joined() + ".json"
    }
}
