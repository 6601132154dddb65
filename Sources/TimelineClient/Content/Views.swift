import Foundation

/// A text, or a date whose display updates without a new timeline.
public struct Text: PrimitiveView {
    private let content: WidgetNode.Content

    /// Creates a fixed text.
    public init(_ text: some StringProtocol) { content = .text(String(text)) }

    /// Creates a date whose display updates while the widget is visible.
    public init(_ date: Date, style: WidgetNode.DateStyle) { content = .date(date, style) }

    var nodes: [WidgetNode] { [WidgetNode(content)] }
}

/// A named image.
public struct Image: PrimitiveView {
    private let name: String

    /// Creates an image from the app's resources.
    public init(_ name: String) { self.name = name }

    /// Creates an image that the system provides.
    public init(systemName: String) { name = systemName }

    var nodes: [WidgetNode] { [WidgetNode(.image(name))] }
}

/// A gauge that shows a value relative to its bounds.
public struct Gauge<Label: View>: PrimitiveView {
    private let fraction: Double
    private let label: Label

    /// Creates a gauge. Values outside the bounds are clamped to them.
    public init(
        value: Double, in bounds: ClosedRange<Double> = 0...1, @ViewBuilder label: () -> Label
    ) {
        let span = bounds.upperBound - bounds.lowerBound
        let part = span > 0 ? (value - bounds.lowerBound) / span : 0
        fraction = part.isFinite ? min(max(part, 0), 1) : 0
        self.label = label()
    }

    var nodes: [WidgetNode] { [WidgetNode(.gauge(fraction, label: label.drawnAsOne))] }
}

/// A horizontal stack of views.
public struct HStack<Content: View>: PrimitiveView {
    private let content: Content
    private var style = WidgetStyle()

    /// Creates a horizontal stack.
    ///
    /// - Parameter spacing: The space between views, in points; `nil` for the default.
    public init(
        alignment: VerticalAlignment = .center, spacing: Double? = nil,
        @ViewBuilder content: () -> Content
    ) {
        self.content = content()
        style.alignment = alignment.stack
        style.spacing = spacing.flatMap { $0.isFinite ? $0 : nil }
    }

    var nodes: [WidgetNode] { [WidgetNode(.stack(.horizontal, content.drawn), style: style)] }
}

/// A vertical stack of views.
public struct VStack<Content: View>: PrimitiveView {
    private let content: Content
    private var style = WidgetStyle()

    /// Creates a vertical stack.
    ///
    /// - Parameter spacing: The space between views, in points; `nil` for the default.
    public init(
        alignment: HorizontalAlignment = .center, spacing: Double? = nil,
        @ViewBuilder content: () -> Content
    ) {
        self.content = content()
        style.alignment = alignment.stack
        style.spacing = spacing.flatMap { $0.isFinite ? $0 : nil }
    }

    var nodes: [WidgetNode] { [WidgetNode(.stack(.vertical, content.drawn), style: style)] }
}

/// A flexible space that fills the rest of a stack.
public struct Spacer: PrimitiveView {
    /// Creates a flexible space.
    public init() {}

    var nodes: [WidgetNode] { [WidgetNode(.spacer)] }
}

/// A stack of overlaid views, the first at the bottom.
public struct ZStack<Content: View>: PrimitiveView {
    private let content: Content
    private var style = WidgetStyle()

    /// Creates a stack of overlaid views.
    public init(alignment: Alignment = .center, @ViewBuilder content: () -> Content) {
        self.content = content()
        style.alignment = alignment.stack
    }

    var nodes: [WidgetNode] { [WidgetNode(.stack(.depth, content.drawn), style: style)] }
}

/// A color as a view. It fills the space it gets, as a background does.
extension Color: PrimitiveView {
    var nodes: [WidgetNode] { [WidgetNode(.color(self))] }
}

/// A button that performs an intent (article "Adding interactivity to widgets and Live Activities",
/// "Add a button").
public struct Button<Label: View>: PrimitiveView {
    private let call: IntentCall
    private let label: Label

    /// Creates a button for an intent with its parameter values.
    public init(intent: some AppIntent, @ViewBuilder label: () -> Label) {
        call = IntentCall(intent)
        self.label = label()
    }

    var nodes: [WidgetNode] {
        guard let style = ControlStyles.drawn.buttons else {
            return [WidgetNode(.button(call, label: label.drawnAsOne))]
        }
        // A custom style draws the whole button; the system adds nothing.
        var look = WidgetStyle()
        look.buttonStyle = .plain
        let label = style.drawn(ControlLabel(nodes: label.drawn))
        return [WidgetNode(.button(call, label: label), style: look)]
    }
}

extension Button where Label == Text {
    /// Creates a button with a text as its label.
    public init(_ title: some StringProtocol, intent: some AppIntent) {
        self.init(intent: intent) { Text(title) }
    }
}

/// A toggle whose intent turns something on or off (the same article, "Add a toggle").
public struct Toggle<Label: View>: PrimitiveView {
    private let isOn: Bool
    private let call: IntentCall
    private let label: Label

    /// Creates a toggle with the state that the timeline gives it.
    public init(isOn: Bool, intent: some AppIntent, @ViewBuilder label: () -> Label) {
        self.isOn = isOn
        call = IntentCall(intent)
        self.label = label()
    }

    var nodes: [WidgetNode] {
        guard let style = ControlStyles.drawn.toggles else {
            return [WidgetNode(.toggle(isOn, call, label: label.drawnAsOne))]
        }
        let label = ControlLabel(nodes: label.drawn)
        return [
            WidgetNode(
                .styledToggle(
                    isOn, call, on: style.drawn(isOn: true, label),
                    off: style.drawn(isOn: false, label)))
        ]
    }
}

/// A link that opens the app at a URL.
public struct Link<Label: View>: PrimitiveView {
    private let destination: URL
    private let label: Label

    /// Creates a link.
    public init(destination: URL, @ViewBuilder label: () -> Label) {
        self.destination = destination
        self.label = label()
    }

    var nodes: [WidgetNode] {
        [WidgetNode(.link(destination.absoluteString, label: label.drawnAsOne))]
    }
}
