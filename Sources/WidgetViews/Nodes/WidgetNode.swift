import Foundation
import WidgetModel

/// The content of a widget without code: stored in archives, and read by programs that draw
/// widgets.
public struct WidgetNode: Sendable, Hashable {
    /// The way in which a stack arranges its parts.
    public enum Axis: String, Sendable, Hashable, CaseIterable {
        /// From left to right, or in reading direction.
        case horizontal
        /// From top to bottom.
        case vertical
        /// On top of each other, the first at the bottom.
        case depth
        /// One after the other as a single text.
        case text
        /// Rows from top to bottom whose cells share their columns.
        case grid
        /// The cells of a row of a grid.
        case gridRow
        /// Only the first part that fits into the space.
        case firstThatFits
        /// A content, then the label that a watch face shows beside it.
        case widgetLabel
        /// The labels of a gauge: its own, its value's, and those of its least and greatest value.
        case gaugeLabels
    }

    /// The format of a date whose display updates over time.
    public enum DateStyle: String, Sendable, Hashable {
        /// The time of day.
        case time
        /// The day.
        case date
        /// The distance between the date and now.
        case relative
        /// The distance between the date and now, with a sign.
        case offset
        /// A clock that counts down to the date, or up from it.
        case timer
    }

    /// The kind of a node, with its content.
    public indirect enum Content: Sendable, Hashable {
        /// A fixed text.
        case text(String)
        /// A date whose display updates over time.
        case date(Date, DateStyle)
        /// A named image.
        case image(String)
        /// A color that fills the space it gets.
        case color(Color)
        /// A shape that fills the space it gets.
        case shape(Figure)
        /// A gauge that is filled to this fraction, 0 to 1.
        case gauge(Double, label: WidgetNode)
        /// Several parts arranged along an axis.
        case stack(Axis, [WidgetNode])
        /// A button that performs an intent.
        case button(IntentCall, label: WidgetNode)
        /// A toggle, with its state, that performs an intent.
        case toggle(Bool, IntentCall, label: WidgetNode)
        /// A toggle with a custom appearance for each state; only that of the current state is
        /// shown.
        case styledToggle(Bool, IntentCall, on: WidgetNode, off: WidgetNode)
        /// A link that opens the app at a URL.
        case link(String, label: WidgetNode)
        /// A flexible space that fills the rest of its stack.
        case spacer
        /// A placeholder for content that must not be recognizable.
        case redacted
    }

    /// Flags that apply to a node and all its parts.
    public struct Marks: OptionSet, Sendable, Hashable {
        /// The marks as bits.
        public let rawValue: UInt8

        /// Creates marks from bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Hidden where people hide sensitive content.
        public static let privacySensitive = Marks(rawValue: 1 << 0)
        /// Never hidden.
        public static let unredacted = Marks(rawValue: 1 << 1)
        /// Shown in the accent color where the system uses accents.
        public static let accentable = Marks(rawValue: 1 << 2)
        /// A background that the system may remove.
        public static let containerBackground = Marks(rawValue: 1 << 3)
        /// Looks pending after an interaction, until the next timeline arrives.
        public static let invalidatable = Marks(rawValue: 1 << 4)
        /// Looks pending.
        public static let invalidated = Marks(rawValue: 1 << 5)
    }

    /// The kind of the node, with its content.
    public var content: Content
    /// The flags of the node.
    public var marks: Marks
    /// The appearance of the node.
    public var style: WidgetStyle
    /// The URL that the app opens when the widget is tapped. Only that of the outermost node
    /// counts.
    public var widgetURL: String?

    /// Creates a node.
    public init(
        _ content: Content, marks: Marks = [], widgetURL: String? = nil,
        style: WidgetStyle = WidgetStyle()
    ) {
        self.content = content
        self.marks = marks
        self.style = style
        self.widgetURL = widgetURL
    }
}

/// An intent with the values of its parameters, performed by a button or toggle of an archived
/// widget.
public struct IntentCall: Sendable, Hashable {
    /// The name of the intent's type.
    public var intent: String
    /// The parameter values, by parameter name.
    public var parameters: [String: ParameterValue]

    /// Creates a call.
    public init(intent: String, parameters: [String: ParameterValue]) {
        self.intent = intent
        self.parameters = parameters
    }
}

extension WidgetNode {
    /// The visible parts of the node: the parts of a stack, the label of a control or gauge, or a
    /// custom toggle's appearance in its current state.
    public var parts: [WidgetNode] {
        switch content {
        case .stack(_, let parts): parts
        case .button(_, let label), .toggle(_, _, let label), .link(_, let label),
            .gauge(_, let label):
            [label]
        case .styledToggle(let isOn, _, let on, let off): [isOn ? on : off]
        case .text, .date, .image, .color, .shape, .spacer, .redacted: []
        }
    }

    /// The greatest ``depth`` that the JSON parser reads back: a stack takes two of its levels, and
    /// the rest is for what holds the node and for the values of its innermost part.
    static let depthMax = JSONValue.depthMax / 2 - 8

    /// The number of nodes inside each other.
    var depth: Int {
        if case .styledToggle(_, _, let on, let off) = content {
            return 1 + max(on.depth, off.depth)
        }
        return 1 + (parts.map(\.depth).max() ?? 0)
    }

    /// Returns the node with redacted content removed, so that an archive for a locked device
    /// contains none of it (article "Creating a widget extension", "Hide sensitive content").
    func redacted(for reasons: RedactionReasons) -> WidgetNode {
        guard !reasons.isEmpty, !marks.contains(.unredacted) else { return self }
        let hidesAll =
            reasons.contains(.placeholder)
            || (reasons.contains(.privacy) && marks.contains(.privacySensitive))
        var node = self
        node.content = content.mapParts { $0.redacted(for: hidesAll ? .placeholder : reasons) }
        guard hidesAll else { return node }
        // A color can reveal as much as a word, and a URL reveals what the content is about.
        node.style.keepLayoutOnly()
        node.widgetURL = nil
        switch content {
        case .stack, .spacer: break
        // The action of a control reveals what it is about, so the whole control is replaced.
        default: node.content = .redacted
        }
        return node
    }

    /// Returns the node without its backgrounds, for contexts where the system removes them
    /// (article "Preparing widgets for additional platforms, contexts, and appearances", "Make your
    /// background views removable"). Returns `nil` when the node is such a background.
    func withoutContainerBackgrounds() -> WidgetNode? {
        guard !marks.contains(.containerBackground) else { return nil }
        var node = self
        node.content = content.mapParts { $0.withoutContainerBackgrounds() }
        return node
    }
}

extension WidgetNode.Content {
    /// Returns the content with each part changed, without those that become `nil`.
    fileprivate func mapParts(_ change: (WidgetNode) -> WidgetNode?) -> WidgetNode.Content {
        func label(_ node: WidgetNode) -> WidgetNode {
            change(node) ?? WidgetNode(.stack(.vertical, []))
        }
        return switch self {
        case .stack(let axis, let parts): .stack(axis, parts.compactMap(change))
        case .gauge(let value, let part): .gauge(value, label: label(part))
        case .button(let call, let part): .button(call, label: label(part))
        case .toggle(let isOn, let call, let part): .toggle(isOn, call, label: label(part))
        case .styledToggle(let isOn, let call, let on, let off):
            .styledToggle(isOn, call, on: label(on), off: label(off))
        case .link(let url, let part): .link(url, label: label(part))
        case .text, .date, .image, .color, .shape, .spacer, .redacted: self
        }
    }
}
