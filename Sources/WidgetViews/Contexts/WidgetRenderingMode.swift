/// The way in which the system colors a widget. Source: "Preparing widgets for additional
/// platforms, contexts, and appearances".
public enum WidgetRenderingMode: String, Sendable, Hashable, CaseIterable {
    /// The widget's own colors.
    case fullColor
    /// Two groups of views, each in a single color.
    case accented
    /// Desaturated, and blended with the content behind the widget.
    case vibrant

    /// The mode as it appears in sentences.
    var phrase: String {
        switch self {
        case .fullColor: "full-colour"
        case .accented: "accented"
        case .vibrant: "vibrant"
        }
    }
}
