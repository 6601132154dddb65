extension View {
    /// The default padding, points.
    private var paddingOfTheSystem: Double { 16 }

    /// Adds padding at some edges.
    ///
    /// - Parameter length: The padding in points; `nil` for the default.
    public func padding(_ edges: Edge.Set = .all, _ length: Double? = nil) -> some View {
        let length = length ?? paddingOfTheSystem
        return padding(
            EdgeInsets(
                top: edges.contains(.top) ? length : 0,
                leading: edges.contains(.leading) ? length : 0,
                bottom: edges.contains(.bottom) ? length : 0,
                trailing: edges.contains(.trailing) ? length : 0))
    }

    /// Adds this many points of padding at every edge.
    public func padding(_ length: Double) -> some View { padding(.all, length) }

    /// Adds padding of a different width at each edge.
    public func padding(_ insets: EdgeInsets) -> some View {
        StyledView(content: self) { $0.padding = $0.padding.map { $0 + insets } ?? insets }
    }

    /// Sets the font of texts.
    public func font(_ font: Font?) -> some View {
        StyledView(content: self) { $0.font = $0.font ?? font }
    }

    /// Sets the color of texts and images.
    public func foregroundStyle(_ style: Color) -> some View {
        StyledView(content: self) { $0.foreground = $0.foreground ?? style }
    }

    /// Sets the color of controls and gauges.
    public func tint(_ color: Color?) -> some View {
        StyledView(content: self) { $0.tint = $0.tint ?? color }
    }

    /// Sets the style of buttons, either one that the system draws or a custom one.
    public func buttonStyle(_ style: some ButtonStyle) -> some View {
        let look = (style as? SystemButtonStyle)?.look
        let content = ControlStyledView(content: self) { $0.buttons = look == nil ? style : nil }
        return StyledView(content: content) { $0.buttonStyle = $0.buttonStyle ?? look }
    }

    /// Sets the style of toggles, either one that the system draws or a custom one.
    public func toggleStyle(_ style: some ToggleStyle) -> some View {
        let look = (style as? SystemToggleStyle)?.look
        let content = ControlStyledView(content: self) { $0.toggles = look == nil ? style : nil }
        return StyledView(content: content) { $0.toggleStyle = $0.toggleStyle ?? look }
    }
}

/// A view with a style change. The innermost value of each property wins.
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
