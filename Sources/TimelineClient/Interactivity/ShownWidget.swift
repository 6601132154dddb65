/// The content of a widget at one point in time.
public struct ShownWidget: Sendable, Equatable {
    /// The content of the widget.
    public var node: WidgetNode
    /// Whether the widget awaits its timeline after an interaction. Content marked as invalidatable
    /// looks pending meanwhile.
    public var isUpdating: Bool
}
