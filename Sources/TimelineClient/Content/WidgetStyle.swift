/// The appearance of a node, as far as its app sets it.
///
/// Fonts, colors and control styles apply to a node and all its parts, unless a part overrides
/// them; padding, alignment and spacing apply to the node only.
public struct WidgetStyle: Sendable, Hashable {
    /// The font of texts.
    public var font: Font?
    /// The color of texts and images.
    public var foreground: Color?
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

    /// Creates a style without values.
    public init() {}

    /// The style of a button that the system draws.
    public enum ButtonLook: String, Sendable, Hashable {
        /// The platform's names for its button styles.
        case automatic, plain, borderless, bordered, borderedProminent
    }

    /// The style of a toggle that the system draws.
    public enum ToggleLook: String, Sendable, Hashable {
        /// The platform's names for its toggle styles.
        case automatic, button, checkbox, `switch`
    }

    /// The alignment of a stack's parts across its axis, or to any side in a depth stack.
    public enum StackAlignment: String, Sendable, Hashable {
        /// At the edge where a line of text begins.
        case leading
        /// At the edge where a line of text ends.
        case trailing
        /// At the top edge.
        case top
        /// At the bottom edge.
        case bottom
        /// At the baseline of the first lines of text.
        case firstTextBaseline
        /// At the baseline of the last lines of text.
        case lastTextBaseline
        /// In a corner of a depth stack.
        case topLeading, topTrailing, bottomLeading, bottomTrailing
    }
}

/// A font, given by its role or its size.
public struct Font: Sendable, Hashable {
    /// The role of a text.
    public enum TextStyle: String, Sendable, Hashable {
        /// The platform's names for the roles.
        case largeTitle, title, title2, title3, headline, subheadline, body, callout, footnote,
            caption, caption2
    }

    /// The weight of the strokes.
    public enum Weight: String, Sendable, Hashable {
        /// The weights from the lightest to the heaviest.
        case ultraLight, thin, light, regular, medium, semibold, bold, heavy, black
    }

    /// The role; `nil` for a font that is given by its size.
    public internal(set) var textStyle: TextStyle?
    /// The size in points, finite; `nil` for the size of the role.
    public internal(set) var size: Double?
    /// The weight; `nil` for the weight of the role.
    public internal(set) var weight: Weight?

    init(_ textStyle: TextStyle? = nil, size: Double? = nil, weight: Weight? = nil) {
        self.textStyle = textStyle
        self.size = size
        self.weight = weight
    }

    /// The font of the largest titles.
    public static let largeTitle = Font(.largeTitle)
    /// The font of first-level titles.
    public static let title = Font(.title)
    /// The font of second-level titles.
    public static let title2 = Font(.title2)
    /// The font of third-level titles.
    public static let title3 = Font(.title3)
    /// The font of headings.
    public static let headline = Font(.headline)
    /// The font of subheadings.
    public static let subheadline = Font(.subheadline)
    /// The font of running text.
    public static let body = Font(.body)
    /// The font of callouts.
    public static let callout = Font(.callout)
    /// The font of footnotes.
    public static let footnote = Font(.footnote)
    /// The font of captions.
    public static let caption = Font(.caption)
    /// The font of secondary captions.
    public static let caption2 = Font(.caption2)

    /// Returns the system's font for a role.
    public static func system(_ style: TextStyle, weight: Weight? = nil) -> Font {
        Font(style, weight: weight)
    }

    /// Returns the system's font of a size, in points. A size that is not finite and positive
    /// becomes 17.
    public static func system(size: Double, weight: Weight? = nil) -> Font {
        Font(size: size.isFinite && size > 0 ? size : 17, weight: weight)
    }

    /// Returns the font with another weight.
    public func weight(_ weight: Weight) -> Font {
        var font = self
        font.weight = weight
        return font
    }

    /// Returns the font in bold.
    public func bold() -> Font { weight(.bold) }
}

/// A color by its name. The renderer chooses the actual color.
public struct Color: RawRepresentable, Sendable, Hashable {
    /// The name of the color.
    public let rawValue: String

    /// Creates a color from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Creates a color from a name that the app defines.
    public init(_ name: String) { self.init(rawValue: name) }

    /// The color of primary content.
    public static let primary = Color("primary")
    /// The color of secondary content.
    public static let secondary = Color("secondary")
    /// The accent color.
    public static let accentColor = Color("accentColor")
    /// White.
    public static let white = Color("white")
    /// Black.
    public static let black = Color("black")
    /// Gray.
    public static let gray = Color("gray")
    /// Red.
    public static let red = Color("red")
    /// Orange.
    public static let orange = Color("orange")
    /// Yellow.
    public static let yellow = Color("yellow")
    /// Green.
    public static let green = Color("green")
    /// Blue.
    public static let blue = Color("blue")
    /// Purple.
    public static let purple = Color("purple")
    /// Pink.
    public static let pink = Color("pink")
}

/// The space at each edge, in points; always finite.
public struct EdgeInsets: Sendable, Hashable {
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

        /// The upper edge.
        public static let top = Set(rawValue: 1)
        /// The edge where a line of text begins.
        public static let leading = Set(rawValue: 2)
        /// The lower edge.
        public static let bottom = Set(rawValue: 4)
        /// The edge where a line of text ends.
        public static let trailing = Set(rawValue: 8)
        /// The left and right edges.
        public static let horizontal: Set = [.leading, .trailing]
        /// The upper and lower edges.
        public static let vertical: Set = [.top, .bottom]
        /// All four edges.
        public static let all: Set = [.horizontal, .vertical]
    }
}

/// The horizontal alignment of the parts of a ``VStack``.
public enum HorizontalAlignment: Sendable, Hashable {
    /// The alignments, named for the direction of text.
    case leading, center, trailing

    var stack: WidgetStyle.StackAlignment? {
        switch self {
        case .leading: .leading
        case .center: nil
        case .trailing: .trailing
        }
    }
}

/// The vertical alignment of the parts of an ``HStack``.
public enum VerticalAlignment: Sendable, Hashable {
    /// At the center, an edge, or a baseline of text.
    case top, center, bottom, firstTextBaseline, lastTextBaseline

    var stack: WidgetStyle.StackAlignment? {
        switch self {
        case .top: .top
        case .center: nil
        case .bottom: .bottom
        case .firstTextBaseline: .firstTextBaseline
        case .lastTextBaseline: .lastTextBaseline
        }
    }
}

/// The alignment of the parts of a ``ZStack``.
public enum Alignment: Sendable, Hashable {
    /// At the center, an edge or a corner.
    case center, leading, trailing, top, bottom, topLeading, topTrailing, bottomLeading,
        bottomTrailing

    var stack: WidgetStyle.StackAlignment? {
        switch self {
        case .center: nil
        case .leading: .leading
        case .trailing: .trailing
        case .top: .top
        case .bottom: .bottom
        case .topLeading: .topLeading
        case .topTrailing: .topTrailing
        case .bottomLeading: .bottomLeading
        case .bottomTrailing: .bottomTrailing
        }
    }
}
