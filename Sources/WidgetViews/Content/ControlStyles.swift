/// A custom appearance for toggles (article "Adding interactivity to widgets and Live Activities",
/// "Add a toggle").
///
/// Both states are drawn when the timeline is archived, because a toggle must show its new state
/// before any code of the app runs.
public protocol ToggleStyle: Sendable {
    /// The type of the view that ``makeBody(configuration:)`` returns.
    associatedtype Body: View
    /// The properties of the toggle to draw.
    typealias Configuration = ToggleStyleConfiguration

    /// Returns the appearance of a toggle, which the configuration describes as on or off.
    @ViewBuilder func makeBody(configuration: Configuration) -> Body
}

/// The properties of a toggle that a ``ToggleStyle`` draws.
public struct ToggleStyleConfiguration {
    /// The label of the toggle.
    public typealias Label = DrawnView

    /// Whether the toggle is on.
    public let isOn: Bool
    /// The label that describes the toggle's purpose.
    public let label: Label
}

/// A custom appearance for buttons.
public protocol ButtonStyle: Sendable {
    /// The type of the view that ``makeBody(configuration:)`` returns.
    associatedtype Body: View
    /// The properties of the button to draw.
    typealias Configuration = ButtonStyleConfiguration

    /// Returns the appearance of a button.
    @ViewBuilder func makeBody(configuration: Configuration) -> Body
}

/// The properties of a button that a ``ButtonStyle`` draws.
public struct ButtonStyleConfiguration {
    /// The label of the button.
    public typealias Label = DrawnView

    /// Whether the button is pressed. Always `false`: a widget's button does not stay pressed.
    public let isPressed = false
    /// The label that describes the button's action.
    public let label: Label
}

/// A style whose toggles the system draws.
public struct SystemToggleStyle: ToggleStyle {
    let look: WidgetStyle.ToggleLook

    /// Returns only the label; the system draws the rest.
    public func makeBody(configuration: Configuration) -> some View { configuration.label }
}

extension ToggleStyle where Self == SystemToggleStyle {
    /// The standard toggle at the widget's location.
    public static var automatic: SystemToggleStyle { .init(look: .automatic) }
    /// A button that stays pressed while it is on.
    public static var button: SystemToggleStyle { .init(look: .button) }
    /// A box with a check mark.
    public static var checkbox: SystemToggleStyle { .init(look: .checkbox) }
    /// A switch.
    public static var `switch`: SystemToggleStyle { .init(look: .switch) }
}

/// A style whose buttons the system draws.
public struct SystemButtonStyle: ButtonStyle {
    let look: WidgetStyle.ButtonLook

    /// Returns only the label; the system draws the rest.
    public func makeBody(configuration: Configuration) -> some View { configuration.label }
}

extension ButtonStyle where Self == SystemButtonStyle {
    /// The standard button at the widget's location.
    public static var automatic: SystemButtonStyle { .init(look: .automatic) }
    /// The label without decoration.
    public static var plain: SystemButtonStyle { .init(look: .plain) }
    /// The label in the tint color, without a border.
    public static var borderless: SystemButtonStyle { .init(look: .borderless) }
    /// The label with a border.
    public static var bordered: SystemButtonStyle { .init(look: .bordered) }
    /// The label with a border and a filled background.
    public static var borderedProminent: SystemButtonStyle { .init(look: .borderedProminent) }
}

/// The app's styles for the controls being drawn; `nil` where the system draws them.
struct ControlStyles: Sendable {
    var toggles: (any ToggleStyle)?
    var buttons: (any ButtonStyle)?
    var labels = LabelStyle.automatic
    var progress = ProgressViewStyle.automatic

    @TaskLocal static var drawn = ControlStyles()
}

extension View {
    /// Sets the styles of the controls in the view. The innermost style wins.
    func styled(_ change: @escaping (inout ControlStyles) -> Void) -> DrawnView {
        DrawnView {
            var styles = ControlStyles.drawn
            change(&styles)
            return ControlStyles.$drawn.withValue(styles) { self.drawn }
        }
    }
}
