import Foundation

/// A named image.
public struct Image: PrimitiveView, Sendable {
    /// The use of an image's colors.
    public enum TemplateRenderingMode: Sendable, Hashable {
        case template, original
    }

    /// The quality of a scaled image.
    public enum Interpolation: String, Sendable, Hashable {
        case none, low, medium, high
    }

    /// The colors of an image where the system colors widgets in groups.
    public enum AccentedRenderingMode: String, Sendable, Hashable {
        case accented, accentedDesaturated, desaturated, fullColor
    }

    private let name: String
    private var style = WidgetStyle()

    /// Creates an image from the app's resources.
    public init(_ name: String) { self.name = name }

    /// Creates an image that the system provides.
    public init(systemName: String) { name = systemName }

    /// Creates an image from the app's resources that an assistant skips.
    public init(decorative name: String) {
        self.init(name)
        style[.accessibilityHidden] = .flag(true)
    }

    var nodes: [WidgetNode] { [WidgetNode(.image(name), style: style)] }

    private func with(
        _ attribute: WidgetStyle.Attribute, _ value: WidgetStyle.Value
    ) -> Image {
        var image = self
        image.style[attribute] = value
        return image
    }

    /// Lets the image take the size of its space.
    public func resizable() -> Image { with(.resizable, .flag(true)) }
    /// Sets the use of the image's colors; `nil` for as its resource says.
    public func renderingMode(_ mode: TemplateRenderingMode?) -> Image {
        mode.map { with(.template, .flag($0 == .template)) } ?? self
    }
    /// Sets the quality of the scaled image.
    public func interpolation(_ interpolation: Interpolation) -> Image {
        with(.interpolation, .text(interpolation.rawValue))
    }
    /// Sets the image's colors where the system colors widgets in groups.
    public func widgetAccentedRenderingMode(_ mode: AccentedRenderingMode?) -> Image {
        mode.map { with(.accentedRendering, .text($0.rawValue)) } ?? self
    }
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
    private var style = WidgetStyle()

    /// Creates a flexible space.
    ///
    /// - Parameter minLength: Its least length, in points; `nil` for the default.
    public init(minLength: Double? = nil) { style[.minWidth] = WidgetStyle.Value.length(minLength) }

    var nodes: [WidgetNode] { [WidgetNode(.spacer, style: style)] }
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
        let body = style.makeBody(configuration: .init(label: DrawnView { label.drawn }))
        return [WidgetNode(.button(call, label: body.drawnAsOne), style: look)]
    }
}

extension Button where Label == Text {
    /// Creates a button with a text as its label.
    public init(_ title: LocalizedStringKey, intent: some AppIntent) {
        self.init(intent: intent) { Text(title) }
    }

    /// Creates a button with a text as its label.
    @_disfavoredOverload
    public init(_ title: some StringProtocol, intent: some AppIntent) {
        self.init(intent: intent) { Text(title) }
    }
}

extension Button where Label == WidgetViews.Label<Text, Image> {
    /// Creates a button with a text and an image as its label.
    public init(_ title: LocalizedStringKey, systemImage: String, intent: some AppIntent) {
        self.init(intent: intent) { WidgetViews.Label(title, systemImage: systemImage) }
    }

    /// Creates a button with a text and an image as its label.
    @_disfavoredOverload
    public init(_ title: some StringProtocol, systemImage: String, intent: some AppIntent) {
        self.init(intent: intent) { WidgetViews.Label(title, systemImage: systemImage) }
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
        func body(_ isOn: Bool) -> WidgetNode {
            style.makeBody(configuration: .init(isOn: isOn, label: DrawnView { label.drawn }))
                .drawnAsOne
        }
        return [WidgetNode(.styledToggle(isOn, call, on: body(true), off: body(false)))]
    }
}

extension Toggle where Label == Text {
    /// Creates a toggle with a text as its label.
    public init(_ title: LocalizedStringKey, isOn: Bool, intent: some AppIntent) {
        self.init(isOn: isOn, intent: intent) { Text(title) }
    }

    /// Creates a toggle with a text as its label.
    @_disfavoredOverload
    public init(_ title: some StringProtocol, isOn: Bool, intent: some AppIntent) {
        self.init(isOn: isOn, intent: intent) { Text(title) }
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

extension Link where Label == Text {
    /// Creates a link with a text as its label.
    public init(_ title: LocalizedStringKey, destination: URL) {
        self.init(destination: destination) { Text(title) }
    }

    /// Creates a link with a text as its label.
    @_disfavoredOverload
    public init(_ title: some StringProtocol, destination: URL) {
        self.init(destination: destination) { Text(title) }
    }
}
