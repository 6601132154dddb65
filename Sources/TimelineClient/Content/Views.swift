import Foundation

/// A text, or a date that goes on by itself.
public struct Text: PrimitiveView {
    private let content: WidgetNode.Content

    /// A text.
    public init(_ text: some StringProtocol) { content = .text(String(text)) }

    /// A date that goes on by itself while the widget is seen.
    public init(_ date: Date, style: WidgetNode.DateStyle) { content = .date(date, style) }

    var nodes: [WidgetNode] { [WidgetNode(content)] }
}

/// An image by its name.
public struct Image: PrimitiveView {
    private let name: String

    /// An image of the app.
    public init(_ name: String) { self.name = name }

    /// An image of the system's.
    public init(systemName: String) { name = systemName }

    var nodes: [WidgetNode] { [WidgetNode(.image(name))] }
}

/// How much of something there is.
public struct Gauge<Label: View>: PrimitiveView {
    private let fraction: Double
    private let label: Label

    /// A gauge of a value within bounds; outside of them it shows the nearest.
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

/// Views side by side.
public struct HStack<Content: View>: PrimitiveView {
    private let content: Content
    private var style = WidgetStyle()

    /// Views side by side.
    ///
    /// - Parameter spacing: Points between them; `nil` for the system's.
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

/// Views one below the other.
public struct VStack<Content: View>: PrimitiveView {
    private let content: Content
    private var style = WidgetStyle()

    /// Views one below the other.
    ///
    /// - Parameter spacing: Points between them; `nil` for the system's.
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

/// Takes the space that a stack has left.
public struct Spacer: PrimitiveView {
    /// Space.
    public init() {}

    var nodes: [WidgetNode] { [WidgetNode(.spacer)] }
}

/// Views one upon the other, the first at the bottom.
public struct ZStack<Content: View>: PrimitiveView {
    private let content: Content
    private var style = WidgetStyle()

    /// Views one upon the other.
    public init(alignment: Alignment = .center, @ViewBuilder content: () -> Content) {
        self.content = content()
        style.alignment = alignment.stack
    }

    var nodes: [WidgetNode] { [WidgetNode(.stack(.depth, content.drawn), style: style)] }
}

/// A colour as a view: fills the space it gets, as a background does.
extension Color: PrimitiveView {
    var nodes: [WidgetNode] { [WidgetNode(.color(self))] }
}

/// Performs an intent when it is tapped (article "Adding interactivity to widgets and Live
/// Activities", "Add a button").
public struct Button<Label: View>: PrimitiveView {
    private let call: IntentCall
    private let label: Label

    /// A button for an intent, whose parameters have values.
    public init(intent: some AppIntent, @ViewBuilder label: () -> Label) {
        call = IntentCall(intent)
        self.label = label()
    }

    var nodes: [WidgetNode] {
        guard let style = ControlStyles.drawn.buttons else {
            return [WidgetNode(.button(call, label: label.drawnAsOne))]
        }
        // All of it is the style's: the system adds nothing.
        var look = WidgetStyle()
        look.buttonStyle = .plain
        let label = style.drawn(ControlLabel(nodes: label.drawn))
        return [WidgetNode(.button(call, label: label), style: look)]
    }
}

extension Button where Label == Text {
    /// A button with a title.
    public init(_ title: some StringProtocol, intent: some AppIntent) {
        self.init(intent: intent) { Text(title) }
    }
}

/// Performs an intent that turns something on or off (the same article, "Add a toggle").
public struct Toggle<Label: View>: PrimitiveView {
    private let isOn: Bool
    private let call: IntentCall
    private let label: Label

    /// A toggle that stands at what the timeline says.
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

/// Opens the app at a URL.
public struct Link<Label: View>: PrimitiveView {
    private let destination: URL
    private let label: Label

    /// A link.
    public init(destination: URL, @ViewBuilder label: () -> Label) {
        self.destination = destination
        self.label = label()
    }

    var nodes: [WidgetNode] {
        [WidgetNode(.link(destination.absoluteString, label: label.drawnAsOne))]
    }
}
