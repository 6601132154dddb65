import TimelineRuntime

/// Lays out a widget's content in points: stacks share their space among their parts, texts break
/// into lines, and nothing is larger than its space.
final class PictureLayout {
    /// The values that a node gives to all its parts.
    struct Look {
        var style = WidgetStyle()
        var isAccented = false
        var isPending = false
        /// Whether the nearest stack is a row.
        var isInRow = false

        func inside(_ node: WidgetNode) -> Look {
            var look = self
            let own = node.style
            look.style.font = own.font ?? style.font
            if own.foreground != nil || own.shading != nil {
                (look.style.foreground, look.style.shading) = (own.foreground, own.shading)
            }
            look.style.tint = own.tint ?? style.tint
            look.style.buttonStyle = own.buttonStyle ?? style.buttonStyle
            look.style.toggleStyle = own.toggleStyle ?? style.toggleStyle
            for (attribute, value) in own.attributes { look.style[attribute] = value }
            look.isAccented = isAccented || node.marks.contains(.accentable)
            return look
        }
    }

    /// The number of nodes that are laid out, also repeatedly; more than any widget has.
    private static let stepsMax = 20_000

    let environment: WidgetEnvironment
    let settings: PictureSettings
    /// Gradients and outlines by their names, which follow from what they are.
    private(set) var definitions: [String: String] = [:]
    private var steps = 0

    init(_ environment: WidgetEnvironment, _ settings: PictureSettings) {
        (self.environment, self.settings) = (environment, settings)
    }

    /// Returns the reference to an element that is drawn only where others refer to it.
    func define(_ element: String, _ attributes: String, _ content: String) -> String {
        let name = "d\(FNV1a(Array((element + attributes + content).utf8)).value)"
        definitions[name] = "<\(element) id=\"\(name)\"\(attributes)>\(content)</\(element)>"
        return "url(#\(name))"
    }

    /// Returns a node in its space. Backgrounds of the container are drawn apart.
    func part(_ node: WidgetNode, in space: PictureSize, _ outer: Look) -> PicturePart {
        steps += 1
        guard !node.marks.contains(.containerBackground), steps < Self.stepsMax else {
            return PicturePart(isCut: steps >= Self.stepsMax)
        }
        var look = outer.inside(node)
        let marks: WidgetNode.Marks =
            settings.isPending ? [.invalidated, .invalidatable] : .invalidated
        look.isPending = outer.isPending || !node.marks.isDisjoint(with: marks)
        let style = node.style
        var part = padded(style.padding ?? EdgeInsets(), space) { space in
            framed(style, space) { content(of: node, in: $0, look) }
        }
        if look.isPending, !outer.isPending {
            part.svg = "<g opacity=\"0.4\">\(part.svg)</g>"
            fill(&part, ink(.primary, look).faded(0.15))
        }
        var moves = ""
        if let offset = style.numbers(.offset), offset.count == 2 {
            moves = "translate(\(Picture.number(offset[0])) \(Picture.number(offset[1])))"
        }
        if let angle = style.number(.rotation) {
            let middle = [angle, part.size.width / 2, part.size.height / 2].map(Picture.number)
            moves += "rotate(\(middle.joined(separator: " ")))"
        }
        if !moves.isEmpty { part.svg = "<g transform=\"\(moves)\">\(part.svg)</g>" }
        let opacity = style.isOn(.hidden) ? 0 : min(max(style.number(.opacity) ?? 1, 0), 1)
        if opacity < 1 { part.svg = "<g opacity=\"\(Picture.number(opacity))\">\(part.svg)</g>" }
        return part
    }

    private func content(of node: WidgetNode, in space: PictureSize, _ look: Look) -> PicturePart {
        let style = node.style
        switch node.content {
        case .text, .date: return lines(of: text(of: node), in: space, look)
        case .stack(.text, _): return sum(node, in: space, look)
        case .image(let name): return image(name, in: space, look)
        case .color(let color):
            return filled(Figure(.rectangle, paint: .color(color)), in: space, look)
        case .shape(let figure): return filled(figure, in: space, look)
        case .gauge(let share, let label):
            return gauge(share, label: label, style: style, in: space, look)
        case .stack(.grid, let rows): return grid(rows, style, in: space, look)
        case .stack(.firstThatFits, let parts):
            let fitting = parts.first { part($0, in: .unlimited, look).size.fits(space) }
            return overlaid([fitting ?? parts.last].compactMap(\.self), style, in: space, look)
        case .stack(.widgetLabel, let parts) where !environment.showsWidgetLabel:
            return overlaid(Array(parts.prefix(1)), style, in: space, look)
        case .stack(let axis, let parts) where axis != .depth:
            let isRow = axis == .horizontal || axis == .gridRow
            return stacked(parts, isRow: isRow, style, in: space, look)
        case .button(_, let label): return button(label, in: space, look)
        case .toggle(let isOn, _, let label): return toggle(isOn, label, in: space, look)
        case .link(_, let label): return part(label, in: space, tinted(look))
        case .spacer: return PicturePart(isSpacer: true)
        case .redacted: return redacted(in: space, look)
        case .stack, .styledToggle: return overlaid(node.parts, style, in: space, look)
        }
    }

    /// Returns the backgrounds of the widget, which fill all of it whatever surrounds them.
    func background(of node: WidgetNode, in space: PictureSize, _ look: Look) -> PicturePart {
        var node = node
        if node.marks.remove(.containerBackground) != nil {
            if case .image(let name) = node.content, PictureSymbols.path(of: name) == nil {
                // An image of the app fills the widget; its name would lie across the content.
                let ground = Figure(.rectangle, paint: .color(.primary.opacity(0.15)))
                return filled(ground, in: space, look)
            }
            return aligned(part(node, in: space, look), in: space, nil)
        }
        let inner = look.inside(node)
        let grounds = node.parts.map {
            (part: background(of: $0, in: space, inner), x: 0.0, y: 0.0)
        }
        return joined(grounds, space)
    }

    /// Returns a part of this size with others at their places in it.
    func joined(
        _ parts: [(part: PicturePart, x: Double, y: Double)], _ size: PictureSize
    ) -> PicturePart {
        var whole = PicturePart(size: size)
        for (part, x, y) in parts {
            whole.isCut = whole.isCut || part.isCut
            let left = environment.isRightToLeft ? size.width - x - part.size.width : x
            let place = "\(Picture.number(left)) \(Picture.number(y))"
            let isMoved = place != "0 0" && !part.svg.isEmpty
            whole.svg +=
                isMoved ? "<g transform=\"translate(\(place))\">\(part.svg)</g>\n" : part.svg
        }
        return whole
    }

    /// Returns a part of exactly this size with another one in it, which decides how it grows.
    func aligned(
        _ part: PicturePart, in size: PictureSize, _ alignment: WidgetStyle.StackAlignment?
    ) -> PicturePart {
        let x = (size.width - part.size.width) * alignment.share(isRow: true)
        let y = (size.height - part.size.height) * alignment.share(isRow: false)
        var whole = part
        (whole.svg, whole.size) = (joined([(part, x, y)], size).svg, size)
        return whole
    }

    func padded(
        _ insets: EdgeInsets, _ space: PictureSize, _ content: (PictureSize) -> PicturePart
    ) -> PicturePart {
        func bounded(_ length: Double, _ limit: Double) -> Double {
            min(max(length, 0), limit, 1_000)
        }
        let left = bounded(insets.leading, space.width)
        let top = bounded(insets.top, space.height)
        let across = left + bounded(insets.trailing, space.width - left)
        let down = top + bounded(insets.bottom, space.height - top)
        let inner = content(PictureSize(width: space.width - across, height: space.height - down))
        var whole = inner
        whole.size.width += across
        whole.size.height += down
        whole.svg = joined([(inner, left, top)], whole.size).svg
        return whole
    }

    /// Returns content in the frame and the clip of its node's style.
    private func framed(
        _ style: WidgetStyle, _ space: PictureSize, _ content: (PictureSize) -> PicturePart
    ) -> PicturePart {
        func most(_ isRow: Bool) -> Double? {
            style.number(isRow ? .width : .height) ?? style.number(isRow ? .maxWidth : .maxHeight)
        }
        var inner = space
        for isRow in [true, false] {
            inner[isRow: isRow] = min(max(most(isRow) ?? .infinity, 0), space[isRow: isRow])
        }
        var part = content(inner)
        var size = part.size
        for isRow in [true, false] {
            let fixed = style.number(isRow ? .width : .height)
            let least = fixed ?? style.number(isRow ? .minWidth : .minHeight) ?? 0
            if let most = most(isRow) {
                if space[isRow: isRow].isFinite { size[isRow: isRow] = inner[isRow: isRow] }
                part.isSpacer = false
                part.growth.remove(isRow)
                if fixed == nil, most > part.size[isRow: isRow] { part.growth.insert(isRow) }
            }
            size[isRow: isRow] = min(max(size[isRow: isRow], least), 10_000, space[isRow: isRow])
            part.isCut = part.isCut || least > space[isRow: isRow]
        }
        let alignment = style.text(.frameAlignment).flatMap(WidgetStyle.StackAlignment.init)
        if size != part.size { part = aligned(part, in: size, alignment) }
        if let kind = style.text(.clip).flatMap(Figure.Kind.init) {
            let outline = element(kind, style.number(.clipRadius), in: size, "")
            part.svg = "<g clip-path=\"\(define("clipPath", "", outline))\">\(part.svg)</g>"
        }
        return part
    }
}
