private typealias Value = WidgetStyle.Value

/// The modifiers of size and place; lengths are in points.
extension View {
    /// Gives the view a size.
    public func frame(
        width: Double? = nil, height: Double? = nil, alignment: Alignment = .center
    ) -> some View {
        with([
            .width: Value.length(width), .height: Value.length(height),
            .frameAlignment: name(alignment.stack),
        ])
    }

    /// Gives the view bounds of its size.
    public func frame(
        minWidth: Double? = nil, idealWidth: Double? = nil, maxWidth: Double? = nil,
        minHeight: Double? = nil, idealHeight: Double? = nil, maxHeight: Double? = nil,
        alignment: Alignment = .center
    ) -> some View {
        with([
            .minWidth: Value.length(minWidth), .idealWidth: Value.length(idealWidth),
            .maxWidth: Value.length(maxWidth), .minHeight: Value.length(minHeight),
            .idealHeight: Value.length(idealHeight), .maxHeight: Value.length(maxHeight),
            .frameAlignment: name(alignment.stack),
        ])
    }

    /// Keeps the view's ideal size, whatever space it gets.
    public func fixedSize(horizontal: Bool = true, vertical: Bool = true) -> some View {
        with([.fixedWidth: .flag(horizontal), .fixedHeight: .flag(vertical)])
    }

    /// Keeps the ratio of width and height; `nil` for that of the content.
    public func aspectRatio(_ ratio: Double? = nil, contentMode: ContentMode) -> some View {
        with([.aspectRatio: Value.length(ratio), .contentMode: name(contentMode)])
    }

    /// Fits the view into its space.
    public func scaledToFit() -> some View { aspectRatio(contentMode: .fit) }
    /// Fills the space with the view.
    public func scaledToFill() -> some View { aspectRatio(contentMode: .fill) }
    /// Sets which view of a stack gets space first.
    public func layoutPriority(_ value: Double) -> some View { set(.layoutPriority, value) }
    /// Sets the columns that a cell of a grid spans.
    public func gridCellColumns(_ count: Int) -> some View { set(.gridColumns, Double(count)) }
    /// Moves the drawing.
    public func offset(x: Double = 0, y: Double = 0) -> some View { set(.offset, [x, y]) }
    /// Rotates the drawing around its center.
    public func rotationEffect(_ angle: Angle) -> some View { set(.rotation, angle.degrees) }
    /// Scales the drawing from its center.
    public func scaleEffect(_ scale: Double) -> some View { set(.scale, [scale, scale]) }
    /// Scales the drawing from its center.
    public func scaleEffect(x: Double = 1, y: Double = 1) -> some View { set(.scale, [x, y]) }
    /// Sets the place among overlaid views.
    public func zIndex(_ value: Double) -> some View { set(.zIndex, value) }

    /// Cuts the view along a shape.
    public func clipShape(_ shape: some Shape) -> some View {
        with([
            .clip: name(shape.figure.kind), .clipRadius: Value.length(shape.figure.cornerRadius),
        ])
    }

    /// Cuts off what is outside of the view's size.
    public func clipped() -> some View { clipShape(Rectangle()) }
    /// Rounds the corners of the view.
    public func cornerRadius(_ radius: Double) -> some View {
        clipShape(RoundedRectangle(cornerRadius: radius))
    }
}

/// The modifiers of layers: what is behind or before a view fills its size.
extension View {
    /// Puts views behind the view.
    public func background(
        alignment: Alignment = .center, @ViewBuilder content: () -> some View
    ) -> some View {
        layered(content(), isBehind: true, alignment)
    }

    /// Puts a color or gradient behind the view.
    public func background(_ style: some ShapeStyle) -> some View {
        background { Rectangle().fill(style) }
    }

    /// Puts another view behind the view.
    @_disfavoredOverload
    public func background(_ view: some View, alignment: Alignment = .center) -> some View {
        background(alignment: alignment) { view }
    }

    /// Puts a filled shape behind the view.
    public func background(_ style: some ShapeStyle, in shape: some Shape) -> some View {
        background { shape.fill(style) }
    }

    /// Puts views before the view.
    public func overlay(
        alignment: Alignment = .center, @ViewBuilder content: () -> some View
    ) -> some View {
        layered(content(), isBehind: false, alignment)
    }

    /// Puts another view before the view.
    public func overlay(_ view: some View, alignment: Alignment = .center) -> some View {
        overlay(alignment: alignment) { view }
    }

    /// Draws a line along the view's edges, inside of them.
    public func border(_ style: some ShapeStyle, width: Double = 1) -> some View {
        overlay { Rectangle().strokeBorder(style, lineWidth: width) }
    }

    /// Puts a color or gradient behind the view. The system may remove it.
    public func containerBackground(
        _ style: some ShapeStyle, for placement: ContainerBackgroundPlacement
    ) -> some View {
        containerBackground(for: placement) { Rectangle().fill(style) }
    }

    /// Adds the label that a watch face shows beside the view.
    public func widgetLabel(@ViewBuilder label: () -> some View) -> some View {
        let label = label()
        return changed { $0 = WidgetNode(.stack(.widgetLabel, [$0, label.drawnAsOne])) }
    }

    /// Adds the text that a watch face shows beside the view.
    public func widgetLabel(_ title: LocalizedStringKey) -> some View {
        widgetLabel { Text(title) }
    }

    /// Adds the text that a watch face shows beside the view.
    @_disfavoredOverload
    public func widgetLabel(_ title: some StringProtocol) -> some View {
        widgetLabel { Text(title) }
    }

    /// Does nothing: a background fills the widget anyway.
    public func ignoresSafeArea() -> some View { self }
}

/// The modifiers of the look.
extension View {
    /// Sets the opacity, 0 to 1.
    public func opacity(_ opacity: Double) -> some View {
        set(.opacity, opacity.isFinite ? min(max(opacity, 0), 1) : 1)
    }
    /// Draws nothing, and keeps the space.
    public func hidden() -> some View { set(.hidden, true) }
    /// Blurs the drawing.
    public func blur(radius: Double) -> some View { set(.blur, radius) }
    /// Sets the saturation of colors: 0 for gray, 1 for as it is.
    public func saturation(_ amount: Double) -> some View { set(.saturation, amount) }
    /// Takes saturation from colors: 0 for none, 1 for all.
    public func grayscale(_ amount: Double) -> some View { set(.grayscale, amount) }
    /// Adds a shadow.
    public func shadow(
        color: Color = .black.opacity(0.33), radius: Double, x: Double = 0, y: Double = 0
    ) -> some View {
        set(.shadow, [radius, x, y]).set(.shadowColor, color)
    }

    /// Sets the greatest number of lines; `nil` for any.
    public func lineLimit(_ number: Int?) -> some View {
        set(.lineLimit, number.map { Double($0) } ?? .infinity)
    }
    /// Sets the part of its size to which a text may shrink.
    public func minimumScaleFactor(_ factor: Double) -> some View {
        set(.minimumScaleFactor, factor)
    }
    /// Lets letters move together where a text needs the space.
    public func allowsTightening(_ allows: Bool) -> some View { set(.allowsTightening, allows) }
    /// Sets the space between lines, in points.
    public func lineSpacing(_ space: Double) -> some View { set(.lineSpacing, space) }
    /// Sets the alignment of lines.
    public func multilineTextAlignment(_ alignment: TextAlignment) -> some View {
        set(.textAlignment, alignment)
    }
    /// Sets where a text that does not fit is cut.
    public func truncationMode(_ mode: TruncationMode) -> some View { set(.truncation, mode) }
    /// Shows texts in capital or small letters; `nil` for as they are.
    public func textCase(_ textCase: TextCase?) -> some View { set(.textCase, textCase) }
    /// Shows texts in bold.
    public func bold(_ isActive: Bool = true) -> some View { set(.bold, isActive) }
    /// Slants the letters of texts.
    public func italic(_ isActive: Bool = true) -> some View { set(.italic, isActive) }
    /// Underlines texts.
    public func underline(_ isActive: Bool = true) -> some View { set(.underline, isActive) }
    /// Draws a line through texts.
    public func strikethrough(_ isActive: Bool = true) -> some View {
        set(.strikethrough, isActive)
    }
    /// Gives all digits the same width.
    public func monospacedDigit() -> some View { set(.monospacedDigits, true) }
    /// Sets the weight of fonts; `nil` for their own.
    public func fontWeight(_ weight: Font.Weight?) -> some View { set(.fontWeight, weight) }
    /// Sets the design of fonts; `nil` for their own.
    public func fontDesign(_ design: Font.Design?) -> some View { set(.fontDesign, design) }
    /// Sets the size of images that the system provides.
    public func imageScale(_ scale: ImageScale) -> some View { set(.imageScale, scale) }
    /// Sets the coloring of images that the system provides; `nil` for their own.
    public func symbolRenderingMode(_ mode: SymbolRenderingMode?) -> some View {
        set(.symbolRendering, mode)
    }
    /// Sets the size of texts in place of the one that the person chose.
    public func dynamicTypeSize(_ size: DynamicTypeSize) -> some View {
        environment(\.dynamicTypeSize, size).set(.dynamicTypeSize, size)
    }

    /// Sets the style of gauges.
    public func gaugeStyle(_ style: GaugeStyle) -> some View { set(.gaugeStyle, style) }
    /// Sets the style of progress views.
    public func progressViewStyle(_ style: ProgressViewStyle) -> some View {
        styled { $0.progress = style }
    }
    /// Leaves out the labels of controls and gauges.
    public func labelsHidden() -> some View { set(.hidesLabels, true) }
    /// Sets the parts of labels that are shown.
    public func labelStyle(_ style: LabelStyle) -> some View { styled { $0.labels = style } }
}

/// The modifiers of changes from one entry to the next, and for assistants. The archive keeps them;
/// what moves or is read is up to the renderer.
extension View {
    /// Sets how a changed content replaces the former.
    public func contentTransition(_ transition: ContentTransition) -> some View {
        set(.contentTransition, transition)
    }
    /// Sets how the view comes and goes.
    public func transition(_ transition: AnyTransition) -> some View {
        set(.transition, transition)
    }
    /// Sets the course of a change; `nil` for none.
    public func animation(_ animation: Animation?, value: some Equatable) -> some View {
        set(.animation, animation)
    }
    /// Sets the identity of the view across the entries of a timeline.
    public func id(_ id: some Hashable) -> some View { with([.id: .text("\(id)")]) }

    /// Sets what an assistant says in place of the content.
    public func accessibilityLabel(_ label: Text) -> some View {
        changed { $0 = $0.with([.accessibilityLabel: .text(label.plain)]) }
    }
    /// Sets what an assistant says in place of the content.
    public func accessibilityLabel(_ label: LocalizedStringKey) -> some View {
        accessibilityLabel(Text(label))
    }
    /// Sets what an assistant says in place of the content.
    @_disfavoredOverload
    public func accessibilityLabel(_ label: some StringProtocol) -> some View {
        accessibilityLabel(Text(label))
    }
    /// Sets the value that an assistant says.
    public func accessibilityValue(_ value: LocalizedStringKey) -> some View {
        changed { $0 = $0.with([.accessibilityValue: .text(value.text)]) }
    }
    /// Sets what an assistant says of the result of an action.
    public func accessibilityHint(_ hint: LocalizedStringKey) -> some View {
        changed { $0 = $0.with([.accessibilityHint: .text(hint.text)]) }
    }
    /// Lets assistants skip the view.
    public func accessibilityHidden(_ isHidden: Bool) -> some View {
        set(.accessibilityHidden, isHidden)
    }
}

extension View {
    fileprivate func set(_ attribute: WidgetStyle.Attribute, _ isOn: Bool) -> some View {
        with([attribute: .flag(isOn)])
    }

    fileprivate func set(_ attribute: WidgetStyle.Attribute, _ number: Double?) -> some View {
        with([attribute: Value.length(number)])
    }

    fileprivate func set(_ attribute: WidgetStyle.Attribute, _ numbers: [Double]) -> some View {
        with([attribute: .numbers(numbers.map { $0.isFinite ? $0 : 0 })])
    }

    /// Sets a name; that of `nil` takes back what is set further outside.
    fileprivate func set<Name: RawRepresentable>(
        _ attribute: WidgetStyle.Attribute, _ value: Name?
    ) -> some View where Name.RawValue == String {
        with([attribute: .text(value?.rawValue ?? "none")])
    }

    /// Puts a layer, which fills the size of the view, behind it or before it.
    private func layered(
        _ layer: some View, isBehind: Bool, _ alignment: Alignment
    ) -> DrawnView {
        changed { node in
            let parts = isBehind ? [layer.drawnAsOne, node] : [node, layer.drawnAsOne]
            node = WidgetNode(.stack(.depth, parts))
            node.style.alignment = alignment.stack
            node.style[.sizingPart] = .number(isBehind ? 1 : 0)
        }
    }
}

private func name<Name: RawRepresentable>(_ value: Name?) -> WidgetStyle.Value?
where Name.RawValue == String {
    value.map { .text($0.rawValue) }
}
