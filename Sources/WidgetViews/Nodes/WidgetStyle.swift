/// The appearance of a node, as far as its app sets it.
///
/// Fonts, colors and control styles apply to a node and all its parts, unless a part overrides
/// them; padding, alignment and spacing apply to the node only.
public struct WidgetStyle: Sendable, Hashable {
    /// The font of texts.
    public var font: Font?
    /// The color of texts and images.
    public var foreground: Color?
    /// The gradient of texts, images and shapes; takes the place of ``foreground``.
    public var shading: Shading?
    /// The color of controls and gauges.
    public var tint: Color?
    /// The space around the node.
    public var padding: EdgeInsets?
    /// The alignment of a stack's parts across its axis; `nil` for centered.
    public var alignment: StackAlignment?
    /// The space between the parts of a stack, in points; `nil` for the default.
    public var spacing: Double?
    /// The style of buttons that the system draws.
    public var buttonStyle: ButtonLook?
    /// The style of toggles that the system draws.
    public var toggleStyle: ToggleLook?
    /// The values of the other modifiers.
    public internal(set) var attributes: [Attribute: Value] = [:]

    /// Creates a style without values.
    public init() {}

    /// The style of a button that the system draws.
    public enum ButtonLook: String, Sendable, Hashable, Codable {
        case automatic, plain, borderless, bordered, borderedProminent
    }

    /// The style of a toggle that the system draws.
    public enum ToggleLook: String, Sendable, Hashable, Codable {
        case automatic, button, checkbox, `switch`
    }

    /// The alignment of a stack's parts across its axis, or to any side in a depth stack.
    public enum StackAlignment: String, Sendable, Hashable, Codable {
        /// At an edge, named for the direction of text.
        case leading, trailing, top, bottom
        /// At the baseline of the first or last lines of text.
        case firstTextBaseline, lastTextBaseline
        /// In a corner of a depth stack.
        case topLeading, topTrailing, bottomLeading, bottomTrailing
    }
}

/// A font, given by its role or its size.
public struct Font: Sendable, Hashable, Codable {
    /// The role of a text.
    public enum TextStyle: String, Sendable, Hashable, Codable {
        case largeTitle, title, title2, title3, headline, subheadline, body, callout, footnote,
            caption, caption2
    }

    /// The weight of the strokes, from the lightest to the heaviest.
    public enum Weight: String, Sendable, Hashable, Codable {
        case ultraLight, thin, light, regular, medium, semibold, bold, heavy, black
    }

    /// The shape of the letters.
    public enum Design: String, Sendable, Hashable, Codable {
        case `default`, serif, rounded, monospaced
    }

    /// The role; `nil` for a font that is given by its size.
    public internal(set) var textStyle: TextStyle?
    /// The size in points, finite; `nil` for the size of the role.
    public internal(set) var size: Double?
    /// The weight; `nil` for the weight of the role.
    public internal(set) var weight: Weight?
    /// The design; `nil` for the system's.
    public internal(set) var design: Design?
    /// The name of a font that the app brings along; `nil` for the system's.
    public internal(set) var name: String?
    /// Whether the letters are slanted.
    public internal(set) var isItalic = false
    /// Whether all digits have the same width.
    public internal(set) var hasMonospacedDigits = false

    init(
        _ textStyle: TextStyle? = nil, size: Double? = nil, weight: Weight? = nil,
        design: Design? = nil, name: String? = nil
    ) {
        self.textStyle = textStyle
        self.size = size
        self.weight = weight
        self.design = design
        self.name = name
    }

    /// The font of a title, from the largest to the smallest.
    public static let (largeTitle, title, title2, title3) = (
        Font(.largeTitle), Font(.title), Font(.title2), Font(.title3)
    )
    /// The font of headings, of running text, and of what is beside it.
    public static let (headline, subheadline, body, callout, footnote, caption, caption2) = (
        Font(.headline), Font(.subheadline), Font(.body), Font(.callout), Font(.footnote),
        Font(.caption), Font(.caption2)
    )

    /// Returns the system's font for a role.
    public static func system(
        _ style: TextStyle, design: Design? = nil, weight: Weight? = nil
    ) -> Font {
        Font(style, weight: weight, design: design)
    }

    /// Returns the system's font of a size, in points. A size that is not finite and positive
    /// becomes 17.
    public static func system(
        size: Double, weight: Weight? = nil, design: Design? = nil
    ) -> Font {
        Font(size: finite(size), weight: weight, design: design)
    }

    /// Returns a font that the app brings along, by its name. A size that is not finite and
    /// positive becomes 17.
    public static func custom(
        _ name: String, size: Double, relativeTo style: TextStyle? = nil
    ) -> Font {
        Font(style, size: finite(size), name: name)
    }

    private static func finite(_ size: Double) -> Double { size.isFinite && size > 0 ? size : 17 }

    /// Returns the font with another weight.
    public func weight(_ weight: Weight) -> Font { with { $0.weight = weight } }
    /// Returns the font in bold.
    public func bold() -> Font { weight(.bold) }
    /// Returns the font with slanted letters.
    public func italic() -> Font { with { $0.isItalic = true } }
    /// Returns the font with letters of the same width.
    public func monospaced() -> Font { with { $0.design = .monospaced } }
    /// Returns the font with digits of the same width.
    public func monospacedDigit() -> Font { with { $0.hasMonospacedDigits = true } }

    func with(_ change: (inout Font) -> Void) -> Font {
        var font = self
        change(&font)
        return font
    }
}

/// A color by its name, or as `#RRGGBB`. The renderer chooses the actual color of a name. An
/// opacity follows after a slash: `red/0.5`.
public struct Color: RawRepresentable, Sendable, Hashable, Codable {
    /// The name of the color.
    public let rawValue: String

    /// Creates a color from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Creates a color from a name that the app defines.
    public init(_ name: String) { self.init(rawValue: name) }

    /// Creates a color from its components, 0 to 1; others are clamped.
    public init(red: Double, green: Double, blue: Double, opacity: Double = 1) {
        let parts = [red, green, blue].map { part in
            let byte = Int((clamped(part) * 255).rounded())
            return (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }
        self = Color("#" + parts.joined()).opacity(opacity)
    }

    /// Creates a gray, 0 for black to 1 for white.
    public init(white: Double, opacity: Double = 1) {
        self.init(red: white, green: white, blue: white, opacity: opacity)
    }

    /// Creates a color from its hue, saturation and brightness, 0 to 1; others are clamped.
    public init(hue: Double, saturation: Double, brightness: Double, opacity: Double = 1) {
        let value = clamped(brightness)
        func part(_ offset: Double) -> Double {
            let place = (offset + clamped(hue) * 6).truncatingRemainder(dividingBy: 6)
            return value - value * clamped(saturation) * max(0, min(place, 4 - place, 1))
        }
        self.init(red: part(5), green: part(3), blue: part(1), opacity: opacity)
    }

    /// The color without its opacity.
    public var opaque: Color { Color(parts.name) }
    /// The opacity, 0 to 1.
    public var alpha: Double { parts.alpha }

    private var parts: (name: String, alpha: Double) {
        guard let slash = rawValue.lastIndex(of: "/"),
            let alpha = Double(rawValue[rawValue.index(after: slash)...])
        else { return (rawValue, 1) }
        return (String(rawValue[..<slash]), clamped(alpha))
    }

    /// Returns the color with this part of its opacity, 0 to 1.
    public func opacity(_ opacity: Double) -> Color {
        let rest = alpha * clamped(opacity)
        return rest < 1 ? Color("\(opaque.rawValue)/\(rest)") : opaque
    }

    /// The accent color.
    public static let accentColor = Color("accentColor")
}

/// The space at each edge, in points; always finite.
public struct EdgeInsets: Sendable, Hashable, Codable {
    /// The space above.
    public let top: Double
    /// The space at the edge where a line of text begins.
    public let leading: Double
    /// The space below.
    public let bottom: Double
    /// The space at the edge where a line of text ends.
    public let trailing: Double

    /// Creates insets. A value that is not finite becomes 0.
    public init(top: Double = 0, leading: Double = 0, bottom: Double = 0, trailing: Double = 0) {
        func finite(_ length: Double) -> Double { length.isFinite ? length : 0 }
        self.top = finite(top)
        self.leading = finite(leading)
        self.bottom = finite(bottom)
        self.trailing = finite(trailing)
    }

    static func + (left: EdgeInsets, right: EdgeInsets) -> EdgeInsets {
        EdgeInsets(
            top: left.top + right.top, leading: left.leading + right.leading,
            bottom: left.bottom + right.bottom, trailing: left.trailing + right.trailing)
    }
}

/// An edge of a view.
public enum Edge: Sendable, Hashable {
    /// The edges, named for the direction of text.
    case top, leading, bottom, trailing

    /// A set of edges.
    public struct Set: OptionSet, Sendable {
        /// The edges as bits.
        public let rawValue: Int8

        /// Creates a set from bits.
        public init(rawValue: Int8) { self.rawValue = rawValue }

        /// A single edge, named for the direction of text.
        public static let (top, leading, bottom, trailing) = (
            Set(rawValue: 1), Set(rawValue: 2), Set(rawValue: 4), Set(rawValue: 8)
        )
        /// The left and right edges.
        public static let horizontal: Set = [.leading, .trailing]
        /// The upper and lower edges.
        public static let vertical: Set = [.top, .bottom]
        /// All four edges.
        public static let all: Set = [.horizontal, .vertical]
    }
}

/// The horizontal alignment of the parts of a ``VStack``.
public enum HorizontalAlignment: String, Sendable, Hashable {
    /// The alignments, named for the direction of text.
    case leading, center, trailing

    var stack: WidgetStyle.StackAlignment? { .init(rawValue: rawValue) }
}

/// The vertical alignment of the parts of an ``HStack``.
public enum VerticalAlignment: String, Sendable, Hashable {
    /// At the center, an edge, or a baseline of text.
    case top, center, bottom, firstTextBaseline, lastTextBaseline

    var stack: WidgetStyle.StackAlignment? { .init(rawValue: rawValue) }
}

/// The alignment of the parts of a ``ZStack``.
public enum Alignment: String, Sendable, Hashable {
    /// At the center, an edge or a corner.
    case center, leading, trailing, top, bottom, topLeading, topTrailing, bottomLeading,
        bottomTrailing

    var stack: WidgetStyle.StackAlignment? { .init(rawValue: rawValue) }
}
