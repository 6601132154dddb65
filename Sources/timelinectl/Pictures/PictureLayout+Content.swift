import TimelineRuntime

/// Shapes, texts, images, and what the system draws itself.
extension PictureLayout {
    /// Returns the attributes that paint an element, by default as the look says.
    private func paint(_ paint: Paint?, _ look: Look, _ name: String = "fill") -> String {
        let own = look.style.shading.map { Paint.shading($0) }
        switch paint ?? own ?? .color(look.style.foreground ?? .primary) {
        case .color(let color): return ink(color, look).attributes(name)
        case .shading(let shading):
            let stops = shading.stops.prefix(100).map { stop in
                let color = ink(stop.color, look).attributes("stop-color")
                return "<stop\(Picture.attributes(["offset": stop.location])) \(color)/>"
            }
            let ends = shading.geometry
            let (element, lengths): (String, KeyValuePairs<String, Double>) =
                switch shading.kind {
                case .linear:
                    ("linear", ["x1": ends[0], "y1": ends[1], "x2": ends[2], "y2": ends[3]])
                // SVG has radii as parts of the element's size, here of one of 158 points.
                case .radial:
                    ("radial", ["cx": ends[0], "cy": ends[1], "r": max(0, ends[3] / 158)])
                // SVG has none around a center; one along the diagonal has the same colors.
                case .angular: ("linear", ["x2": 1, "y2": 1])
                }
            let places = Picture.attributes(lengths)
            return "\(name)=\"\(define("\(element)Gradient", places, stops.joined()))\""
        }
    }

    /// Returns the element of a figure in a space: filled, or its outline, or a part of that from
    /// and to.
    func element(
        _ kind: Figure.Kind, _ radius: Double? = nil, in size: PictureSize, _ paint: String,
        line: Double? = nil, trim: [Double]? = nil
    ) -> String {
        // A line is drawn on both sides of the outline, here inside of the space.
        let inset = (line ?? 0) / 2
        let (x, y) = (size.width / 2 - inset, size.height / 2 - inset)
        let (across, down) = kind == .circle ? (min(x, y), min(x, y)) : (x, y)
        var paint = paint
        if let line { paint += Picture.attributes(["stroke-width": line]) + " fill=\"none\"" }
        if line != nil, let trim, trim.count == 2 {
            // Right for round figures only.
            let around = Double.pi * (across + down)
            let ends = trim.map { min(max($0, 0), 1) * around }
            let dash = [max(0, ends[1] - ends[0]), around].map(Picture.number)
            paint += Picture.attributes(["stroke-dashoffset": -ends[0]])
            paint += " stroke-dasharray=\"\(dash.joined(separator: " "))\""
        }
        let corner: Double
        switch kind {
        case .circle, .ellipse:
            let place = Picture.attributes([
                "cx": x + inset, "cy": y + inset, "rx": across, "ry": down,
            ])
            return "<ellipse\(place) \(paint)/>"
        case .capsule: corner = min(x, y)
        case .roundedRectangle, .containerRelative: corner = min(max(radius ?? 16, 0), x, y)
        case .rectangle, .divider, .accessoryBackground: corner = 0
        }
        if inset > 0 { paint += Picture.attributes(["x": inset, "y": inset]) }
        let place = Picture.attributes(["width": 2 * x, "height": 2 * y, "rx": corner])
        return "<rect\(place) \(paint)/>"
    }

    func fill(_ part: inout PicturePart, _ ink: Ink) {
        part.svg = element(.roundedRectangle, 4, in: part.size, ink.attributes()) + part.svg
    }

    func filled(_ figure: Figure, in space: PictureSize, _ look: Look) -> PicturePart {
        var whole = PicturePart(size: space.limited(PictureSize(width: 10, height: 10)))
        whole.growth = [true, false]
        if figure.kind == .divider {
            whole.size[isRow: look.isInRow] = min(whole.size[isRow: look.isInRow], 1)
            whole.growth.remove(look.isInRow)
        }
        let grounds = [Figure.Kind.divider: "separator", .accessoryBackground: "fill"]
        let own = figure.paint ?? grounds[figure.kind].map { Paint.color(Color($0)) }
        let line = figure.lineWidth.map { min(max($0, 0), whole.size.width, whole.size.height) }
        let paint = self.paint(own, look, line == nil ? "fill" : "stroke")
        let (kind, radius) = (figure.kind, figure.cornerRadius)
        whole.svg = element(kind, radius, in: whole.size, paint, line: line, trim: figure.trim)
        return whole
    }

    private func font(_ look: Look) -> PictureFont {
        PictureFont(look.style, on: environment.platform, typeSize: environment.dynamicTypeSize)
    }

    func text(of node: WidgetNode) -> String {
        switch node.content {
        case .text(let text): text
        case .date(let date, let format):
            settings.text(of: date, format, node.style, environment.locale)
        default: node.parts.map(text).joined()
        }
    }

    /// Returns a sum of texts; if it needs several lines, all of it looks like its first text.
    func sum(_ node: WidgetNode, in space: PictureSize, _ look: Look) -> PicturePart {
        let parts = node.parts.map { part($0, in: .unlimited, look) }
        let row = joined(parts, isRow: true, gap: 0, .lastTextBaseline)
        guard let first = node.parts.first, !row.size.fits(space) else { return row }
        return lines(of: text(of: node), in: space, look.inside(first))
    }

    /// - Parameter scale: The size of the text in relation to the look's font.
    func lines(
        of text: String, in space: PictureSize, _ look: Look, scale: Double = 1
    ) -> PicturePart {
        let style = look.style
        let text =
            switch style.text(.textCase) {
            case "uppercase": text.uppercased()
            case "lowercase": text.lowercased()
            default: text
            }
        var font = self.font(look)
        font.size *= scale
        // The system would cut the line off; a smaller one still says what it is.
        let height = min(font.lineHeight, space.height)
        let isLow = height < font.lineHeight
        guard font.lineHeight < 2 * height else { return PicturePart(isCut: true) }
        font.size *= height / font.lineHeight
        var count = min(space.height / height + 0.001, style.number(.lineLimit) ?? 1_000, 1_000)
        if environment.widgetFamily == .accessoryInline { count = 1 }
        let (lines, isCut) = font.lines(of: text, width: space.width, count: Int(max(count, 1)))
        if isCut, scale - 0.1 >= max(style.number(.minimumScaleFactor) ?? 1, 0.1) {
            return self.lines(of: text, in: space, look, scale: scale - 0.1)
        }
        let (paint, isRightToLeft) = (self.paint(nil, look), environment.isRightToLeft)
        let parts = lines.map { line in
            let size = PictureSize(width: font.width(of: line), height: height)
            let left = isRightToLeft ? size.width : 0
            let place = Picture.attributes(["x": left, "y": font.size * 0.95])
            let anchor = isRightToLeft ? " text-anchor=\"end\"" : ""
            let start = "<text\(place)\(anchor)\(font.svg) \(paint)>"
            return PicturePart(size: size, svg: start + Picture.escaped(line) + "</text>")
        }.filter { $0.size.width <= space.width + 0.001 }
        let alignment = style.text(.textAlignment) ?? "leading"
        var whole = joined(parts, isRow: false, gap: 0, .init(rawValue: alignment))
        whole.isCut = isCut || isLow || parts.count < lines.count
        return whole
    }

    /// Returns a drawing where there is one for the name, and else the name in a box.
    func image(_ name: String, in space: PictureSize, _ look: Look) -> PicturePart {
        let isResizable = look.style.isOn(.resizable)
        var part: PicturePart
        if let path = PictureSymbols.path(of: name) {
            let scale = ["small": 1.0, "large": 1.7][look.style.text(.imageScale) ?? ""] ?? 1.3
            let (side, most) = (font(look).size * scale, min(space.width, space.height))
            let own = isResizable && most.isFinite ? most : min(side, most)
            part = PicturePart(size: PictureSize(width: own, height: own), isCut: own < side / 2)
            part.svg =
                "<path transform=\"scale(\(Picture.number(own / 24)))\" "
                + "fill-rule=\"evenodd\" \(paint(nil, look)) d=\"\(path)\"/>"
        } else {
            let insets = EdgeInsets(top: 3, leading: 5, bottom: 3, trailing: 5)
            part = padded(insets, space) { lines(of: name, in: $0, look, scale: 0.7) }
            if isResizable { part = aligned(part, in: space.limited(part.size), nil) }
            fill(&part, ink(look.style.foreground ?? .primary, look).faded(0.15))
        }
        part.growth = isResizable ? [true, false] : []
        return part
    }

    /// Returns the grey box that stands for hidden content and must not reveal its size.
    func redacted(in space: PictureSize, _ look: Look) -> PicturePart {
        let size = font(look).size
        let (width, height) = (min(size * 3.2, space.width), min(size, space.height))
        var part = PicturePart(size: PictureSize(width: width, height: height))
        fill(&part, ink(.gray, look).faded(0.45))
        return part
    }

    /// Returns a gauge: a ring around its value or label, or a bar below them.
    func gauge(
        _ stated: Double, label: WidgetNode, style own: WidgetStyle, in space: PictureSize,
        _ look: Look
    ) -> PicturePart {
        let share = settings.fraction(stated, own)
        let color = look.style.tint ?? .accentColor
        let rest = color.opacity(0.3)
        var labels = [label]
        if case .stack(.gaugeLabels, let parts) = label.content { labels = parts }
        func named(_ index: Int) -> [WidgetNode] {
            guard !look.style.isOn(.hidesLabels), labels.indices.contains(index) else { return [] }
            return labels[index] == WidgetNode(.stack(.vertical, [])) ? [] : [labels[index]]
        }
        let isRound = [.accessoryCircular, .accessoryCorner].contains(environment.widgetFamily)
        let name = look.style.text(own[.progressStyle] == nil ? .gaugeStyle : .progressStyle) ?? ""
        if name.lowercased().contains("circular") || (isRound && ["", "automatic"].contains(name)) {
            let arcs = [(rest, 1.0), (color, share)].map { color, end in
                var circle = Figure(.circle, paint: .color(color))
                circle.lineWidth = 6
                circle.trim = [0, end]
                var arc = WidgetNode(.shape(circle))
                arc.style[.rotation] = .number(-90)
                return arc
            }
            var middle = WidgetNode(.stack(.depth, Array((named(1) + named(0)).prefix(1))))
            middle.style.padding = EdgeInsets(top: 10, leading: 10, bottom: 10, trailing: 10)
            var ring = WidgetNode(.stack(.depth, arcs + [middle]))
            ring.style[.maxWidth] = .number(60)
            ring.style[.maxHeight] = .number(60)
            return part(ring, in: space, look)
        }
        let stops = [(color, 0.0), (color, share), (rest, share), (rest, 1.0)]
            .map { Gradient.Stop(color: $0, location: $1) }
        let start = UnitPoint(x: environment.isRightToLeft ? 1 : 0, y: 0)
        let gradient = LinearGradient(
            gradient: Gradient(stops: stops), startPoint: start,
            endPoint: UnitPoint(x: 1 - start.x, y: 0))
        var bar = WidgetNode(.shape(Figure(.capsule, paint: gradient.paint)))
        bar.style[.height] = .number(min(6, space.height))
        let rows = [named(0) + named(1), named(2) + [bar] + named(3)].filter { !$0.isEmpty }
        var style = WidgetStyle()
        style.spacing = 4
        let parts = rows.map { WidgetNode(.stack(.horizontal, $0)) }
        return stacked(parts, isRow: false, style, in: space, look)
    }

    /// Returns the look of a label in the tint, unless it has a color of its own.
    func tinted(_ look: Look) -> Look {
        var look = look
        guard look.style.foreground == nil, look.style.shading == nil else { return look }
        look.style.foreground = look.style.tint ?? .accentColor
        return look
    }

    func button(_ label: WidgetNode, in space: PictureSize, _ look: Look) -> PicturePart {
        let style = look.style.buttonStyle ?? .automatic
        var inner = style == .plain ? look : tinted(look)
        guard style != .plain, style != .borderless else { return part(label, in: space, inner) }
        // In one color a label would vanish on a ground as strong as itself.
        let isStrong = style == .borderedProminent && hasOwnColors
        if isStrong { inner.style.foreground = look.style.foreground ?? .white }
        let ground = (look.style.tint ?? .accentColor).opacity(isStrong ? 1 : 0.2)
        return part(capsule(label, ground), in: space, inner)
    }

    func toggle(
        _ isOn: Bool, _ label: WidgetNode, in space: PictureSize, _ look: Look
    ) -> PicturePart {
        let color = isOn ? look.style.tint ?? .accentColor : .gray
        let style = look.style.toggleStyle ?? .automatic
        guard style == .switch || style == .checkbox else {
            let inner = isOn ? tinted(look) : look
            return part(capsule(label, color.opacity(isOn ? 0.35 : 0.2)), in: space, inner)
        }
        var box = WidgetNode(.image("\(style.rawValue).\(isOn ? "on" : "off")"))
        box.style.foreground = color
        let labels = look.style.isOn(.hidesLabels) ? [] : [label]
        let parts = style == .switch ? labels + [box] : [box] + labels
        return part(WidgetNode(.stack(.horizontal, parts)), in: space, look)
    }

    private func capsule(_ label: WidgetNode, _ color: Color) -> WidgetNode {
        let ground = Figure(.roundedRectangle, cornerRadius: 8, paint: .color(color))
        var inner = WidgetNode(.stack(.depth, [label]))
        inner.style.padding = EdgeInsets(top: 6, leading: 10, bottom: 6, trailing: 10)
        var whole = WidgetNode(.stack(.depth, [WidgetNode(.shape(ground)), inner]))
        whole.style[.sizingPart] = .number(1)
        return whole
    }
}
