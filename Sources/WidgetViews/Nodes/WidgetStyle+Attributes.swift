import WidgetModel

/// The modifiers that set a single value: one row each.
extension WidgetStyle {
    /// A property of a node's appearance. Its raw value is its name in archives.
    public enum Attribute: String, Sendable, Hashable, CaseIterable {
        /// Of texts: numbers.
        case lineLimit, minimumScaleFactor, lineSpacing, tracking, kerning, baselineOffset
        /// Of texts: flags.
        case bold, italic, underline, strikethrough, monospacedDigits, allowsTightening
        /// Of texts: names.
        case fontWeight, fontDesign, textAlignment, textCase, truncation
        /// Of dates and gauges that move by themselves: the seconds since 1970 at which they begin
        /// and end, and at which they pause.
        case liveFrom, liveTo, livePause
        /// Of dates and gauges that move by themselves: flags.
        case countsDown, showsHours
        /// Of images: flags.
        case resizable, template
        /// Of images: names.
        case imageScale, symbolRendering, interpolation, accentedRendering
        /// Of controls and gauges: names.
        case gaugeStyle, progressStyle, dynamicTypeSize
        /// Whether the labels of controls are left out.
        case hidesLabels
        /// How a change to the next entry is shown: names, with seconds where they are given.
        case contentTransition, transition, animation

        /// The size in points; a greatest one may be ``Value/infinity``.
        case width, height, minWidth, idealWidth, maxWidth, minHeight, idealHeight, maxHeight
        /// The place of the content in its frame: the name of an alignment.
        case frameAlignment
        /// Whether the content keeps its ideal size, whatever space it gets.
        case fixedWidth, fixedHeight
        /// The width divided by the height.
        case aspectRatio
        /// `fit` or `fill`.
        case contentMode
        /// Which part of a stack gets space first.
        case layoutPriority
        /// The columns that a cell of a grid spans.
        case gridColumns
        /// The part of a depth stack that decides its size; the others fill it.
        case sizingPart

        /// The shape that cuts the content: the name of a ``Figure/Kind``.
        case clip
        /// The radius of the corners of that shape, in points.
        case clipRadius

        /// Of everything: numbers.
        case opacity, rotation, blur, saturation, grayscale
        /// Of everything: the order in a depth stack.
        case zIndex
        /// Of everything: horizontal and vertical.
        case offset, scale
        /// Of everything: radius, horizontal and vertical.
        case shadow
        /// The color of the shadow.
        case shadowColor
        /// Whether nothing is drawn, although the space is kept.
        case hidden
        /// Of everything: what an assistant reads.
        case accessibilityLabel, accessibilityValue, accessibilityHint
        /// Whether an assistant skips the content.
        case accessibilityHidden
        /// The identity of a view across the entries of a timeline.
        case id

        /// The place of an attribute around a node. An attribute further inside can only be added
        /// to a node without one further outside.
        enum Layer: Comparable {
            case inherited, frame, clip, outside, scaled, rotated, moved
        }

        var layer: Layer {
            switch self {
            case .width, .height, .minWidth, .idealWidth, .maxWidth, .minHeight, .idealHeight,
                .maxHeight, .frameAlignment, .fixedWidth, .fixedHeight, .aspectRatio, .contentMode,
                .layoutPriority, .gridColumns, .sizingPart:
                .frame
            case .clip, .clipRadius: .clip
            case .opacity, .blur, .saturation, .grayscale, .zIndex, .shadow, .shadowColor, .hidden,
                .accessibilityLabel, .accessibilityValue, .accessibilityHint, .accessibilityHidden,
                .transition, .id:
                .outside
            case .scale: .scaled
            case .rotation: .rotated
            case .offset: .moved
            default: .inherited
            }
        }
    }

    /// The value of an attribute.
    public enum Value: Sendable, Hashable {
        /// Whether something is so.
        case flag(Bool)
        /// A finite number.
        case number(Double)
        /// Several finite numbers.
        case numbers([Double])
        /// A name or a text. The name `none` takes back what is set further outside.
        case text(String)

        /// A length without end.
        public static let infinity = Value.text("infinity")

        /// Returns a number as a value; `nil` for one that is not a number.
        static func length(_ length: Double?) -> Value? {
            guard let length, !length.isNaN else { return nil }
            return length.isFinite ? .number(length) : length > 0 ? .infinity : .number(0)
        }

        var json: JSONValue {
            switch self {
            case .flag(let flag): .bool(flag)
            case .number(let number): .number(number)
            case .numbers(let numbers): .array(numbers.map { .number($0) })
            case .text(let text): .string(text)
            }
        }

        init?(_ json: JSONValue) {
            if let flag = json.boolValue {
                self = .flag(flag)
            } else if let number = json.numberValue {
                self = .number(number)
            } else if let text = json.stringValue {
                self = .text(text)
            } else if let elements = json.arrayValue {
                let numbers = elements.compactMap(\.numberValue)
                guard numbers.count == elements.count else { return nil }
                self = .numbers(numbers)
            } else {
                return nil
            }
        }
    }

    /// The value of an attribute; `nil` where no modifier sets it.
    public subscript(_ attribute: Attribute) -> Value? {
        get { attributes[attribute] }
        set { attributes[attribute] = newValue }
    }

    /// The number of an attribute. That of a frame may be infinite.
    public func number(_ attribute: Attribute) -> Double? {
        switch attributes[attribute] {
        case .number(let number): number
        case .text("infinity") where attribute.layer == .frame: .infinity
        default: nil
        }
    }

    /// The numbers of an attribute.
    public func numbers(_ attribute: Attribute) -> [Double]? {
        if case .numbers(let numbers) = attributes[attribute] { numbers } else { nil }
    }

    /// The text of an attribute.
    public func text(_ attribute: Attribute) -> String? {
        if case .text(let text) = attributes[attribute] { text } else { nil }
    }

    /// Whether an attribute is set and true.
    public func isOn(_ attribute: Attribute) -> Bool { attributes[attribute] == .flag(true) }

    /// Removes everything that tells of the content: colors, texts, effects. What is hidden stays
    /// hidden.
    mutating func keepLayoutOnly() {
        foreground = nil
        shading = nil
        tint = nil
        attributes = attributes.filter {
            $0.key.layer == .frame || $0.key.layer == .clip || $0.key == .hidden
        }
    }
}

extension WidgetNode {
    /// Returns the node with attributes of one layer. Of those that all parts inherit, the
    /// innermost wins; any other is put around what is there.
    func with(_ values: [WidgetStyle.Attribute: WidgetStyle.Value]) -> WidgetNode {
        let layer = values.keys.map(\.layer).max() ?? .inherited
        guard layer > .inherited else {
            var node = self
            node.style.attributes.merge(values) { inner, _ in inner }
            return node
        }
        let isTaken =
            style.attributes.keys.contains { $0.layer > layer || values[$0] != nil }
            || (style.padding != nil && layer < .outside)
        var node = isTaken ? WidgetNode(.stack(.depth, [self])) : self
        node.style.attributes.merge(values) { $1 }
        return node
    }
}

extension View {
    /// Sets attributes of one layer, without those that are `nil`.
    func with(_ values: [WidgetStyle.Attribute: WidgetStyle.Value?]) -> some View {
        let values = values.compactMapValues { $0 }
        return changed { $0 = $0.with(values) }
    }
}
