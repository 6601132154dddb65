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
        changed { node in
            // A shadow or a rotation is of the node alone, and padding is around both.
            if node.style.attributes.keys.contains(where: { $0.layer >= .outside }) {
                node = WidgetNode(.stack(.depth, [node]))
            }
            node.style.padding = node.style.padding.map { $0 + insets } ?? insets
        }
    }

    /// Sets the font of texts.
    public func font(_ font: Font?) -> some View {
        changed { $0.style.font = $0.style.font ?? font }
    }

    /// Sets the color or gradient of texts, images and shapes.
    public func foregroundStyle(_ style: some ShapeStyle) -> some View {
        changed { $0.style.paint(style.paint) }
    }

    /// Sets the color of texts, images and shapes.
    public func foregroundColor(_ color: Color?) -> some View {
        changed { if let color { $0.style.paint(.color(color)) } }
    }

    /// Sets the color of controls and gauges.
    public func tint(_ color: Color?) -> some View {
        changed { $0.style.tint = $0.style.tint ?? color }
    }

    /// Sets the style of buttons, either one that the system draws or a custom one.
    public func buttonStyle(_ style: some ButtonStyle) -> some View {
        let look = (style as? SystemButtonStyle)?.look
        return styled { $0.buttons = look == nil ? style : nil }
            .changed { $0.style.buttonStyle = $0.style.buttonStyle ?? look }
    }

    /// Sets the style of toggles, either one that the system draws or a custom one.
    public func toggleStyle(_ style: some ToggleStyle) -> some View {
        let look = (style as? SystemToggleStyle)?.look
        return styled { $0.toggles = look == nil ? style : nil }
            .changed { $0.style.toggleStyle = $0.style.toggleStyle ?? look }
    }
}

extension WidgetStyle {
    /// Sets the color or gradient of the foreground, unless there is one.
    mutating func paint(_ paint: Paint) {
        guard foreground == nil, shading == nil else { return }
        switch paint {
        case .color(let color): foreground = color
        case .shading(let gradient): shading = gradient
        }
    }
}
