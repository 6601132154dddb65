/// How the system colours a widget. Source: "Preparing widgets for additional platforms, contexts,
/// and appearances".
public enum WidgetRenderingMode: String, Sendable, Hashable, CaseIterable {
    /// The widget's own colours.
    case fullColor
    /// Two groups of views, each in one colour.
    case accented
    /// No colours of its own, blended with what lies behind the widget.
    case vibrant

    /// The mode as a sentence calls it.
    var phrase: String {
        switch self {
        case .fullColor: "full-colour"
        case .accented: "accented"
        case .vibrant: "vibrant"
        }
    }
}
