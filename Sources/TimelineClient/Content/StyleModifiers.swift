extension View {
    /// Points that a system leaves around a view where nobody says how many.
    private var paddingOfTheSystem: Double { 16 }

    /// Leaves space around the view.
    ///
    /// - Parameter length: Points; `nil` for the system's.
    public func padding(_ edges: Edge.Set = .all, _ length: Double? = nil) -> some View {
        let length = length ?? paddingOfTheSystem
        return padding(
            EdgeInsets(
                top: edges.contains(.top) ? length : 0,
                leading: edges.contains(.leading) ? length : 0,
                bottom: edges.contains(.bottom) ? length : 0,
                trailing: edges.contains(.trailing) ? length : 0))
    }

    /// Leaves so many points around the view.
    public func padding(_ length: Double) -> some View { padding(.all, length) }

    /// Leaves space around the view.
    public func padding(_ insets: EdgeInsets) -> some View {
        StyledView(content: self) { $0.padding = $0.padding.map { $0 + insets } ?? insets }
    }

    /// Sets texts in a font.
    public func font(_ font: Font?) -> some View {
        StyledView(content: self) { $0.font = $0.font ?? font }
    }

    /// Gives texts and images a colour.
    public func foregroundStyle(_ style: Color) -> some View {
        StyledView(content: self) { $0.foreground = $0.foreground ?? style }
    }

    /// Gives controls and gauges a colour.
    public func tint(_ color: Color?) -> some View {
        StyledView(content: self) { $0.tint = $0.tint ?? color }
    }

    /// Says how buttons look: as the system draws them, or as a style of the app's own does.
    public func buttonStyle(_ style: some ButtonStyle) -> some View {
        let look = (style as? SystemButtonStyle)?.look
        let content = ControlStyledView(content: self) { $0.buttons = look == nil ? style : nil }
        return StyledView(content: content) { $0.buttonStyle = $0.buttonStyle ?? look }
    }

    /// Says how toggles look: as the system draws them, or as a style of the app's own does.
    public func toggleStyle(_ style: some ToggleStyle) -> some View {
        let look = (style as? SystemToggleStyle)?.look
        let content = ControlStyledView(content: self) { $0.toggles = look == nil ? style : nil }
        return StyledView(content: content) { $0.toggleStyle = $0.toggleStyle ?? look }
    }
}

/// A view of which something is said; what is said nearer to a view counts.
struct StyledView<Content: View>: PrimitiveView {
    let content: Content
    let change: (inout WidgetStyle) -> Void

    var nodes: [WidgetNode] {
        content.drawn.map { node in
            var node = node
            change(&node.style)
            return node
        }
    }
}
