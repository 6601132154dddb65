import Foundation
import WidgetModel

/// What a widget shows, without code: what an archive keeps, and whoever draws widgets reads.
public struct WidgetNode: Sendable, Hashable {
    /// How the parts of a stack stand.
    public enum Axis: String, Sendable, Hashable {
        /// Side by side.
        case horizontal
        /// One below the other.
        case vertical
        /// One upon the other.
        case depth
    }

    /// How a date is shown, which goes on by itself.
    public enum DateStyle: String, Sendable, Hashable {
        /// The time of day.
        case time
        /// The date.
        case date
        /// How far away it is.
        case relative
        /// A clock that counts towards it or from it.
        case timer
    }

    /// What it is.
    public indirect enum Content: Sendable, Hashable {
        /// A text.
        case text(String)
        /// A date that goes on by itself.
        case date(Date, DateStyle)
        /// An image by its name.
        case image(String)
        /// A colour that fills the space it gets.
        case color(Color)
        /// How much of something there is: 0 to 1.
        case gauge(Double, label: WidgetNode)
        /// Several parts.
        case stack(Axis, [WidgetNode])
        /// Performs an intent.
        case button(IntentCall, label: WidgetNode)
        /// Performs an intent that turns something on or off.
        case toggle(Bool, IntentCall, label: WidgetNode)
        /// The same, drawn by the app in both states: what is shown is that of its state.
        case styledToggle(Bool, IntentCall, on: WidgetNode, off: WidgetNode)
        /// Opens the app at a URL.
        case link(String, label: WidgetNode)
        /// Space that takes what its stack has left.
        case spacer
        /// Something that must not be recognised.
        case redacted
    }

    /// What is said of a node and all its parts.
    public struct Marks: OptionSet, Sendable, Hashable {
        /// The marks as bits.
        public let rawValue: UInt8

        /// The marks with these bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Hidden where people hide what is sensitive.
        public static let privacySensitive = Marks(rawValue: 1 << 0)
        /// Never hidden.
        public static let unredacted = Marks(rawValue: 1 << 1)
        /// In the accent's colour where the system uses accents.
        public static let accentable = Marks(rawValue: 1 << 2)
        /// A background that the system may take away.
        public static let containerBackground = Marks(rawValue: 1 << 3)
        /// Looks as if it waits after an interaction, until the next timeline.
        public static let invalidatable = Marks(rawValue: 1 << 4)
    }

    /// What it is.
    public var content: Content
    /// What is said of it.
    public var marks: Marks
    /// How it looks.
    public var style: WidgetStyle
    /// What the app opens when the widget is tapped; only the outermost counts.
    public var widgetURL: String?

    /// A node.
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

/// An intent with the values of its parameters: what a button or toggle of an archived widget
/// performs.
public struct IntentCall: Sendable, Hashable {
    /// The name of the intent's type.
    public var intent: String
    /// The values by name.
    public var parameters: [String: ParameterValue]

    /// A call.
    public init(intent: String, parameters: [String: ParameterValue]) {
        self.intent = intent
        self.parameters = parameters
    }

    init<Intent: AppIntent>(_ intent: Intent) {
        self.init(intent: "\(Intent.self)", parameters: intent.parameters)
    }
}

extension WidgetNode {
    /// What is shown in it: the parts of a stack, the label of whatever has one, and of a toggle that
    /// the app drew the look of its state.
    public var parts: [WidgetNode] {
        switch content {
        case .stack(_, let parts): parts
        case .button(_, let label), .toggle(_, _, let label), .link(_, let label),
            .gauge(_, let label):
            [label]
        case .styledToggle(let isOn, _, let on, let off): [isOn ? on : off]
        case .text, .date, .image, .color, .spacer, .redacted: []
        }
    }

    /// The node as it may be shown: what must not be recognised is not in it any more, so that an
    /// archive for a locked device holds none of it (article "Creating a widget extension", "Hide
    /// sensitive content").
    func redacted(for reasons: RedactionReasons) -> WidgetNode {
        guard !reasons.isEmpty, !marks.contains(.unredacted) else { return self }
        let hidesAll =
            reasons.contains(.placeholder)
            || (reasons.contains(.privacy) && marks.contains(.privacySensitive))
        var node = self
        let parts = hidesAll ? RedactionReasons.placeholder : reasons
        if hidesAll {
            // A colour may tell as much as a word, and where it leads what it is.
            node.style.foreground = nil
            node.style.tint = nil
            node.widgetURL = nil
        }
        switch content {
        case .stack(let axis, let children):
            node.content = .stack(axis, children.map { $0.redacted(for: parts) })
        case .spacer: break
        case .text, .date, .image, .color, .redacted, .gauge, .button, .toggle, .styledToggle,
            .link:
            if hidesAll {
                // What it does would tell what it is.
                node.content = .redacted
            } else {
                node.content = content.mapLabel { $0.redacted(for: parts) }
            }
        }
        return node
    }

    /// The node without its backgrounds, where the system takes them away (article "Preparing
    /// widgets for additional platforms, contexts, and appearances", "Make your background views
    /// removable").
    func withoutContainerBackgrounds() -> WidgetNode? {
        guard !marks.contains(.containerBackground) else { return nil }
        var node = self
        if case .stack(let axis, let children) = content {
            node.content = .stack(axis, children.compactMap { $0.withoutContainerBackgrounds() })
        }
        return node
    }
}

extension WidgetNode.Content {
    fileprivate func mapLabel(_ change: (WidgetNode) -> WidgetNode) -> WidgetNode.Content {
        switch self {
        case .gauge(let value, let label): .gauge(value, label: change(label))
        case .button(let call, let label): .button(call, label: change(label))
        case .toggle(let isOn, let call, let label): .toggle(isOn, call, label: change(label))
        case .styledToggle(let isOn, let call, let on, let off):
            .styledToggle(isOn, call, on: change(on), off: change(off))
        case .link(let url, let label): .link(url, label: change(label))
        case .text, .date, .image, .color, .stack, .spacer, .redacted: self
        }
    }
}
