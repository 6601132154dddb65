/// How a toggle looks (article "Adding interactivity to widgets and Live Activities", "Add a toggle").
///
/// A style of the app's own is drawn for both states when the timeline is archived, for a toggle
/// shows its new state before any code of the app has run.
public protocol ToggleStyle: Sendable {
    /// What ``makeBody(configuration:)`` returns.
    associatedtype Body: View
    /// The toggle that is drawn.
    typealias Configuration = ToggleStyleConfiguration

    /// What a toggle looks like that is on, or off, as the configuration says.
    @ViewBuilder func makeBody(configuration: Configuration) -> Body
}

/// A toggle that a ``ToggleStyle`` draws.
public struct ToggleStyleConfiguration {
    /// What the toggle is for, as its view says.
    public typealias Label = ControlLabel

    /// Whether it is on.
    public let isOn: Bool
    /// What it is for.
    public let label: Label
}

/// How a button looks.
public protocol ButtonStyle: Sendable {
    /// What ``makeBody(configuration:)`` returns.
    associatedtype Body: View
    /// The button that is drawn.
    typealias Configuration = ButtonStyleConfiguration

    /// What a button looks like.
    @ViewBuilder func makeBody(configuration: Configuration) -> Body
}

/// A button that a ``ButtonStyle`` draws.
public struct ButtonStyleConfiguration {
    /// What the button does, as its view says.
    public typealias Label = ControlLabel

    /// Whether it is pressed: never, for a button of a widget stays in no such state.
    public let isPressed = false
    /// What it does.
    public let label: Label
}

/// The label of a control whose look an app draws itself.
public struct ControlLabel: PrimitiveView {
    let nodes: [WidgetNode]
}

/// A toggle that the system draws.
public struct SystemToggleStyle: ToggleStyle {
    let look: WidgetStyle.ToggleLook

    /// The label: the system draws the rest.
    public func makeBody(configuration: Configuration) -> some View { configuration.label }
}

extension ToggleStyle where Self == SystemToggleStyle {
    /// As toggles look where the widget is.
    public static var automatic: SystemToggleStyle { .init(look: .automatic) }
    /// A button that stays pressed.
    public static var button: SystemToggleStyle { .init(look: .button) }
    /// A box with a mark.
    public static var checkbox: SystemToggleStyle { .init(look: .checkbox) }
    /// A switch.
    public static var `switch`: SystemToggleStyle { .init(look: .switch) }
}

/// A button that the system draws.
public struct SystemButtonStyle: ButtonStyle {
    let look: WidgetStyle.ButtonLook

    /// The label: the system draws the rest.
    public func makeBody(configuration: Configuration) -> some View { configuration.label }
}

extension ButtonStyle where Self == SystemButtonStyle {
    /// As buttons look where the widget is.
    public static var automatic: SystemButtonStyle { .init(look: .automatic) }
    /// Its label alone.
    public static var plain: SystemButtonStyle { .init(look: .plain) }
    /// Its label, in the tint.
    public static var borderless: SystemButtonStyle { .init(look: .borderless) }
    /// With a border.
    public static var bordered: SystemButtonStyle { .init(look: .bordered) }
    /// With a border, and filled.
    public static var borderedProminent: SystemButtonStyle { .init(look: .borderedProminent) }
}

extension ToggleStyle {
    func drawn(isOn: Bool, _ label: ControlLabel) -> WidgetNode {
        makeBody(configuration: .init(isOn: isOn, label: label)).drawnAsOne
    }
}

extension ButtonStyle {
    func drawn(_ label: ControlLabel) -> WidgetNode {
        makeBody(configuration: .init(label: label)).drawnAsOne
    }
}

/// The app's own styles for the controls that are drawn now; `nil` where the system draws them.
struct ControlStyles: Sendable {
    var toggles: (any ToggleStyle)?
    var buttons: (any ButtonStyle)?

    @TaskLocal static var drawn = ControlStyles()
}

/// A view whose controls have a style; what is said nearer to a control counts.
struct ControlStyledView<Content: View>: PrimitiveView {
    let content: Content
    let change: (inout ControlStyles) -> Void

    var nodes: [WidgetNode] {
        var styles = ControlStyles.drawn
        change(&styles)
        return ControlStyles.$drawn.withValue(styles) { content.drawn }
    }
}
