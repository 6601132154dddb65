import Foundation
import WidgetModel
import WidgetViews

/// The timeline of one widget as it was drawn: all that a system needs to show it, so that no code
/// of the app runs while it is visible (article "Adding interactivity to widgets and Live
/// Activities", "Understand the role of app intents").
///
/// Content that people can hide is drawn a second time without the sensitive parts, so that a
/// locked device need not read them.
public struct TimelineArchive: Sendable, Equatable {
    /// The properties of an environment that a drawing depends on.
    public struct Context: Sendable, Hashable {
        /// The location of the widget.
        public var location: WidgetLocation
        /// The rendering mode.
        public var renderingMode: WidgetRenderingMode
        /// The color scheme: light or dark.
        public var colorScheme: ColorScheme
        /// Whether the widget is shown in Always On.
        public var isLuminanceReduced: Bool
        /// Whether sensitive content is hidden.
        public var isRedacted: Bool
        /// The amount of detail: less where the person is far away.
        public var levelOfDetail: LevelOfDetail

        /// Creates the context of an environment.
        public init(_ environment: WidgetEnvironment) {
            location = environment.location
            renderingMode = environment.widgetRenderingMode
            colorScheme = environment.colorScheme
            isLuminanceReduced = environment.isLuminanceReduced
            isRedacted = environment.redactionReasons.contains(.privacy)
            levelOfDetail = environment.levelOfDetail
        }
    }

    /// One entry of a timeline, with a drawing for each context.
    public struct Entry: Sendable, Equatable {
        /// The date on which the entry begins to be shown.
        public var date: Date
        /// The entry's relevance from that date.
        public var relevance: TimelineEntryRelevance?
        /// The content for each context.
        public var drawings: [Context: WidgetNode]

        /// Creates an entry.
        public init(
            date: Date, relevance: TimelineEntryRelevance?, drawings: [Context: WidgetNode]
        ) {
            self.date = date
            self.relevance = relevance
            self.drawings = drawings
        }
    }

    /// The widget that the timeline belongs to.
    public var widget: WidgetInfo
    /// The entries, in the provider's order.
    public var entries: [Entry]
    /// The date at which the reload policy asks for the next timeline; `nil` for never.
    public var reloadDate: Date?
    /// The traits of the widget that affect its display: its protection, redaction and background.
    /// Families and locations are not kept: they decided which contexts were drawn.
    public let traits: WidgetTraits

    /// Creates an archive of entries that are already drawn.
    ///
    /// - Parameter traits: The traits that the widget declares; see ``traits``.
    public init(
        widget: WidgetInfo, entries: [Entry], reloadDate: Date?,
        traits: WidgetTraits = WidgetTraits()
    ) {
        self.widget = widget
        self.entries = entries
        self.reloadDate = reloadDate
        var kept = WidgetTraits(
            isContainerBackgroundRemovable: traits.isContainerBackgroundRemovable,
            dataProtection: traits.dataProtection,
            configuresRedaction: traits.configuresRedaction)
        kept.isRelevance = traits.isRelevance
        kept.disablesContentMargins = traits.disablesContentMargins
        self.traits = kept
    }

    /// Draws a timeline for each of these environments. Afterwards no code of the app is needed to
    /// show it.
    ///
    /// - Throws: The error of `draw`.
    public init(
        _ timeline: AnyTimeline, of widget: WidgetInfo, with traits: WidgetTraits = WidgetTraits(),
        for environments: [WidgetEnvironment],
        draw: (any TimelineEntry, WidgetEnvironment) throws -> WidgetNode
    ) rethrows {
        self.init(
            widget: widget,
            entries: try timeline.entries.map { entry in
                var drawings: [Context: WidgetNode] = [:]
                for environment in environments {
                    drawings[Context(environment)] = try draw(entry, environment)
                }
                return Entry(date: entry.date, relevance: entry.relevance, drawings: drawings)
            }, reloadDate: timeline.reloadDate, traits: traits)
    }

    /// Returns the content at `date` in some context that hides nothing. An entry conveys the same
    /// in all such contexts; only its look differs.
    func anyNode(at date: Date) -> WidgetNode? {
        EntrySequence(dates: entries.map(\.date)).index(at: date)
            .flatMap { entries[$0].drawings.first { !$0.key.isRedacted }?.value }
    }

    /// Returns the content at `date` in an environment; `nil` before the first entry, and for a
    /// context without a drawing. The placeholder is then shown instead.
    public func node(
        at date: Date, in environment: WidgetEnvironment
    ) -> WidgetNode? {
        guard let index = EntrySequence(dates: entries.map(\.date)).index(at: date) else {
            return nil
        }
        let (context, drawings) = (Context(environment), entries[index].drawings)
        if let node = drawings[context] { return node }
        // An archive of an earlier version knows no distance.
        var near = context
        near.levelOfDetail = .default
        return drawings[near]
    }
}

/// The file format of an archive.
extension TimelineArchive {
    /// The version of the format that is written, and the newest that is read.
    static let version: Int64 = 1

    /// The reason why an archive cannot be read. Its content is then rebuilt.
    public enum Fault: Error, Sendable, Equatable {
        /// The file is damaged, or not an archive.
        case corrupt
        /// A later version of the app wrote it.
        case newer(version: Int64)
    }

    /// The archive as bytes. Equal archives encode to equal bytes.
    package var serialized: [UInt8] { document.serialized }

    /// The archive as a document, which ``serialized`` is the text of.
    var document: JSONValue {
        let json = json
        return [
            "version": .integer(Self.version), "checksum": .string(Self.checksum(json.serialized)),
            "timeline": json,
        ]
    }

    /// Reads the format that ``serialized`` writes. Throws ``Fault``; no partial archive is ever
    /// returned.
    package init(serialized bytes: [UInt8]) throws(Fault) {
        guard let document = try? JSONValue(parsing: bytes) else { throw .corrupt }
        try self.init(document: document)
    }

    /// Reads what ``document`` makes. Throws ``Fault``.
    init(document: JSONValue) throws(Fault) {
        guard let file = document.objectValue, let version = file["version"]?.integerValue
        else { throw .corrupt }
        guard version <= Self.version else { throw .newer(version: version) }
        guard version == Self.version, let body = file["timeline"],
            file["checksum"]?.stringValue == Self.checksum(body.serialized),
            let archive = Self(body)
        else { throw .corrupt }
        self = archive
    }

    private static func checksum(_ bytes: [UInt8]) -> String {
        String(FNV1a(bytes).value, radix: 16)
    }

    /// The timeline as JSON. Equal drawings are stored once.
    private var json: JSONValue {
        var places: [WidgetNode: Int] = [:]
        var nodes: [JSONValue] = []
        let entries = entries.map { entry -> JSONValue in
            var object: JSONObject = ["date": .number(entry.date.timeIntervalSince1970)]
            if let relevance = entry.relevance {
                object["score"] = .number(Double(relevance.score))
                object["duration"] = .number(relevance.duration)
            }
            let drawings = entry.drawings.map { (context: $0.key.text, node: $0.value) }
                .sorted { $0.context < $1.context }
            var own = JSONObject()
            for (context, node) in drawings {
                let place = places[node] ?? nodes.count
                if place == nodes.count {
                    places[node] = place
                    nodes.append(node.json)
                }
                own[context] = .integer(Int64(place))
            }
            object["drawings"] = .object(own)
            return .object(object)
        }
        var object = widget.archived
        object["entries"] = .array(entries)
        object["nodes"] = .array(nodes)
        if let reloadDate { object["reloadAt"] = .number(reloadDate.timeIntervalSince1970) }
        if traits != WidgetTraits() {
            var own: JSONObject = [
                "protection": .string(traits.dataProtection.rawValue),
                "redacts": .bool(traits.configuresRedaction),
                "removableBackground": .bool(traits.isContainerBackgroundRemovable),
            ]
            if traits.isRelevance { own["relevance"] = .bool(true) }
            if traits.disablesContentMargins { own["withoutMargins"] = .bool(true) }
            object["traits"] = .object(own)
        }
        return .object(object)
    }

    private init?(_ json: JSONValue) {
        guard let object = json.objectValue, let widget = WidgetInfo(archived: object),
            let documents = object["nodes"]?.arrayValue,
            let elements = object["entries"]?.arrayValue
        else { return nil }
        let nodes = documents.compactMap { WidgetNode($0) }
        let entries = elements.compactMap { Entry($0, nodes) }
        guard nodes.count == documents.count, entries.count == elements.count else { return nil }
        var traits = WidgetTraits()
        if let kept = object["traits"] {
            guard let read = WidgetTraits(archived: kept) else { return nil }
            traits = read
        }
        self.init(
            widget: widget, entries: entries,
            reloadDate: object["reloadAt"]?.numberValue.map(Date.init(timeIntervalSince1970:)),
            traits: traits)
    }
}

extension WidgetTraits {
    fileprivate init?(archived json: JSONValue) {
        guard let object = json.objectValue,
            let protection = object["protection"]?.stringValue.flatMap(DataProtection.init),
            let redacts = object["redacts"]?.boolValue,
            let isRemovable = object["removableBackground"]?.boolValue
        else { return nil }
        self.init(
            isContainerBackgroundRemovable: isRemovable, dataProtection: protection,
            configuresRedaction: redacts)
        isRelevance = object["relevance"]?.boolValue ?? false
        disablesContentMargins = object["withoutMargins"]?.boolValue ?? false
    }
}

extension TimelineArchive.Entry {
    fileprivate init?(_ json: JSONValue, _ nodes: [WidgetNode]) {
        guard let object = json.objectValue, let date = object["date"]?.numberValue,
            let members = object["drawings"]?.objectValue?.members
        else { return nil }
        self.init(
            date: Date(timeIntervalSince1970: date),
            relevance: object["score"]?.numberValue.map {
                TimelineEntryRelevance(
                    score: Float($0), duration: object["duration"]?.numberValue ?? 0)
            }, drawings: [:])
        for member in members {
            guard let context = TimelineArchive.Context(text: member.name),
                let place = member.value.integerValue, nodes.indices.contains(Int(clamping: place))
            else { return nil }
            drawings[context] = nodes[Int(clamping: place)]
        }
    }
}

extension TimelineArchive.Context {
    fileprivate var text: String {
        [
            renderingMode.rawValue, colorScheme.rawValue,
            levelOfDetail == .simplified ? "far" : isLuminanceReduced ? "dim" : "lit",
            isRedacted ? "redacted" : "open", location.rawValue,
        ].joined(separator: " ")
    }

    fileprivate init?(text: String) {
        // The location comes last because its name is free text and may contain spaces.
        let parts = text.split(
            separator: " ", maxSplits: 4, omittingEmptySubsequences: false
        ).map(String.init)
        guard parts.count == 5, let mode = WidgetRenderingMode(rawValue: parts[0]),
            let scheme = ColorScheme(rawValue: parts[1]), ["dim", "lit", "far"].contains(parts[2]),
            ["redacted", "open"].contains(parts[3])
        else { return nil }
        renderingMode = mode
        colorScheme = scheme
        isLuminanceReduced = parts[2] == "dim"
        levelOfDetail = parts[2] == "far" ? .simplified : .default
        isRedacted = parts[3] == "redacted"
        location = WidgetLocation(rawValue: parts[4])
    }
}
