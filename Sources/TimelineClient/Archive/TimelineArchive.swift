import Foundation
import WidgetModel

/// The timeline of one widget as it was drawn: all that a system needs to show it, so that no code
/// of the app runs while it is seen (article "Adding interactivity to widgets and Live Activities",
/// "Understand the role of app intents").
///
/// What people may hide is drawn without it as well, so that a locked device need not read the rest.
public struct TimelineArchive: Sendable, Equatable {
    /// What a drawing depends on.
    public struct Context: Sendable, Hashable {
        /// Where the widget is.
        public var location: WidgetLocation
        /// How it is coloured.
        public var renderingMode: WidgetRenderingMode
        /// Light or dark.
        public var colorScheme: ColorScheme
        /// Whether Always On shows it.
        public var isLuminanceReduced: Bool
        /// Whether what is sensitive is hidden.
        public var isRedacted: Bool

        /// What drawings for an environment depend on.
        public init(_ environment: WidgetEnvironment) {
            location = environment.location
            renderingMode = environment.widgetRenderingMode
            colorScheme = environment.colorScheme
            isLuminanceReduced = environment.isLuminanceReduced
            isRedacted = environment.redactionReasons.contains(.privacy)
        }
    }

    /// One entry.
    public struct Entry: Sendable, Equatable {
        /// When it begins to be shown.
        public var date: Date
        /// How much it matters then.
        public var relevance: TimelineEntryRelevance?
        /// What is shown of it.
        public var drawings: [Context: WidgetNode]

        /// An entry.
        public init(
            date: Date, relevance: TimelineEntryRelevance?, drawings: [Context: WidgetNode]
        ) {
            self.date = date
            self.relevance = relevance
            self.drawings = drawings
        }
    }

    /// The widget.
    public var widget: WidgetInfo
    /// The entries, in the provider's order.
    public var entries: [Entry]
    /// When the policy asks for the next timeline; `nil` for never.
    public var reloadDate: Date?
    /// What the widget declares that decides what is shown of it: its protection, its redaction and
    /// its background. Families and locations are not kept: they decided what was drawn.
    public let traits: WidgetTraits

    /// An archive.
    ///
    /// - Parameter traits: What the widget declares; see ``traits``.
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
        self.traits = kept
    }

    /// A timeline, drawn for each of these environments by the app's own code, for the last time.
    ///
    /// - Throws: What `draw` throws.
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

    /// What is shown at `date` in some context that hides nothing: what a timeline says is the same
    /// in all of them.
    func anyNode(at date: Date) -> WidgetNode? {
        EntrySequence(dates: entries.map(\.date)).index(at: date)
            .flatMap { entries[$0].drawings.first { !$0.key.isRedacted }?.value }
    }

    /// What is shown at `date` in an environment; `nil` before the first entry, and for a context
    /// that nothing was drawn for: the placeholder stands in then.
    public func node(
        at date: Date, in environment: WidgetEnvironment,
        spacing: TimeInterval = EntrySequence.defaultSpacing
    ) -> WidgetNode? {
        EntrySequence(dates: entries.map(\.date), spacing: spacing).index(at: date)
            .flatMap { entries[$0].drawings[Context(environment)] }
    }
}

/// The form of the file.
extension TimelineArchive {
    /// The version of the form that is written, and the newest that is read.
    static let version: Int64 = 1

    /// Why an archive cannot be read. What it held is built again.
    public enum Fault: Error, Sendable, Equatable {
        /// It is damaged, or none.
        case corrupt
        /// A later version of the app wrote it.
        case newer(version: Int64)
    }

    /// The archive as bytes; equal archives give equal ones.
    package var serialized: [UInt8] {
        let body = json.serialized
        let file: JSONValue = [
            "version": .integer(Self.version), "checksum": .string(Self.checksum(body)),
            "timeline": json,
        ]
        return file.serialized
    }

    /// Reads what ``serialized`` wrote.
    ///
    /// - Throws: ``Fault``; never anything half read.
    package init(serialized bytes: [UInt8]) throws(Fault) {
        guard let file = (try? JSONValue(parsing: bytes))?.objectValue,
            let version = file["version"]?.integerValue
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

    /// Drawings that are alike are kept once.
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
        var object: JSONObject = [
            "kind": .string(widget.kind), "family": .string(widget.family.rawValue),
            "parameters": parametersObject(widget.configuration), "entries": .array(entries),
            "nodes": .array(nodes),
        ]
        if let reloadDate { object["reloadAt"] = .number(reloadDate.timeIntervalSince1970) }
        if traits != WidgetTraits() {
            var own: JSONObject = [
                "protection": .string(traits.dataProtection.rawValue),
                "redacts": .bool(traits.configuresRedaction),
                "removableBackground": .bool(traits.isContainerBackgroundRemovable),
            ]
            if traits.isRelevance { own["relevance"] = .bool(true) }
            object["traits"] = .object(own)
        }
        return .object(object)
    }

    private init?(_ json: JSONValue) {
        guard let object = json.objectValue, let kind = object["kind"]?.stringValue,
            let family = object["family"]?.stringValue, let parameters = object["parameters"],
            let configuration = parametersRead(parameters),
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
            widget: WidgetInfo(
                kind: kind, family: WidgetFamily(rawValue: family), configuration: configuration),
            entries: entries,
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
    /// The context as the name of a drawing.
    fileprivate var text: String {
        [
            renderingMode.rawValue, colorScheme.rawValue, isLuminanceReduced ? "dim" : "lit",
            isRedacted ? "redacted" : "open", location.rawValue,
        ].joined(separator: " ")
    }

    fileprivate init?(text: String) {
        // The location is last: it is anybody's name.
        let parts = text.split(
            separator: " ", maxSplits: 4, omittingEmptySubsequences: false
        ).map(String.init)
        guard parts.count == 5, let mode = WidgetRenderingMode(rawValue: parts[0]),
            let scheme = ColorScheme(rawValue: parts[1]), ["dim", "lit"].contains(parts[2]),
            ["redacted", "open"].contains(parts[3])
        else { return nil }
        renderingMode = mode
        colorScheme = scheme
        isLuminanceReduced = parts[2] == "dim"
        isRedacted = parts[3] == "redacted"
        location = WidgetLocation(rawValue: parts[4])
    }
}
