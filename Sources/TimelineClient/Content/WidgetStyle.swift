/// How a node looks, as far as its app says.
///
/// Fonts, colours and the styles of controls hold for a node and all its parts, unless a part says
/// otherwise; padding, alignment and spacing are its own.
public struct WidgetStyle: Sendable, Hashable {
    /// How texts are set.
    public var font: Font?
    /// The colour of texts and images.
    public var foreground: Color?
    /// The colour of controls and gauges.
    public var tint: Color?
    /// Space around it.
    public var padding: EdgeInsets?
    /// How the parts of a stack stand beside each other; `nil` for centred.
    public var alignment: StackAlignment?
    /// Points between the parts of a stack; `nil` for the system's.
    public var spacing: Double?
    /// How buttons look that the system draws.
    public var buttonStyle: ButtonLook?
    /// How toggles look that the system draws.
    public var toggleStyle: ToggleLook?

    /// Nothing is said.
    public init() {}

    /// How a button looks that the system draws.
    public enum ButtonLook: String, Sendable, Hashable {
        /// As the platform names them.
        case automatic, plain, borderless, bordered, borderedProminent
    }

    /// How a toggle looks that the system draws.
    public enum ToggleLook: String, Sendable, Hashable {
        /// As the platform names them.
        case automatic, button, checkbox, `switch`
    }

    /// How the parts of a stack stand, across its axis; of one in depth, to any side.
    public enum StackAlignment: String, Sendable, Hashable {
        /// Where a line of text begins.
        case leading
        /// Where it ends.
        case trailing
        /// At the top.
        case top
        /// At the bottom.
        case bottom
        /// On the baseline of the first lines.
        case firstTextBaseline
        /// On the baseline of the last lines.
        case lastTextBaseline
        /// In a corner, of a stack in depth.
        case topLeading, topTrailing, bottomLeading, bottomTrailing
    }
}

/// A font by its role or size.
public struct Font: Sendable, Hashable {
    /// What a text is for.
    public enum TextStyle: String, Sendable, Hashable {
        /// As the platform names them.
        case largeTitle, title, title2, title3, headline, subheadline, body, callout, footnote,
            caption, caption2
    }

    /// How heavy the strokes are.
    public enum Weight: String, Sendable, Hashable {
        /// From the lightest to the heaviest.
        case ultraLight, thin, light, regular, medium, semibold, bold, heavy, black
    }

    /// Its role; `nil` for a font of a size.
    public internal(set) var textStyle: TextStyle?
    /// Its size in points, finite; `nil` for that of its role.
    public internal(set) var size: Double?
    /// Its weight; `nil` for that of its role.
    public internal(set) var weight: Weight?

    init(_ textStyle: TextStyle? = nil, size: Double? = nil, weight: Weight? = nil) {
        self.textStyle = textStyle
        self.size = size
        self.weight = weight
    }

    /// The largest.
    public static let largeTitle = Font(.largeTitle)
    /// Of a title.
    public static let title = Font(.title)
    /// Of a title below that.
    public static let title2 = Font(.title2)
    /// Of a title below that.
    public static let title3 = Font(.title3)
    /// Of a heading.
    public static let headline = Font(.headline)
    /// Of a heading below that.
    public static let subheadline = Font(.subheadline)
    /// Of running text.
    public static let body = Font(.body)
    /// Of a remark.
    public static let callout = Font(.callout)
    /// Of a footnote.
    public static let footnote = Font(.footnote)
    /// Of a caption.
    public static let caption = Font(.caption)
    /// Of a smaller caption.
    public static let caption2 = Font(.caption2)

    /// The system's font for a role.
    public static func system(_ style: TextStyle, weight: Weight? = nil) -> Font {
        Font(style, weight: weight)
    }

    /// The system's font of a size, in points; one that is no size counts as 17.
    public static func system(size: Double, weight: Weight? = nil) -> Font {
        Font(size: size.isFinite && size > 0 ? size : 17, weight: weight)
    }

    /// The font in a weight.
    public func weight(_ weight: Weight) -> Font {
        var font = self
        font.weight = weight
        return font
    }

    /// The font in bold.
    public func bold() -> Font { weight(.bold) }
}

/// A colour by its name; what it looks like is for who draws it to say.
public struct Color: RawRepresentable, Sendable, Hashable {
    /// The name.
    public let rawValue: String

    /// The colour called `rawValue`.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A colour of the app.
    public init(_ name: String) { self.init(rawValue: name) }

    /// Of what matters.
    public static let primary = Color("primary")
    /// Of what matters less.
    public static let secondary = Color("secondary")
    /// The accent.
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

/// Space at the edges, in points, finite.
public struct EdgeInsets: Sendable, Hashable {
    /// Above.
    public let top: Double
    /// Where a line of text begins.
    public let leading: Double
    /// Below.
    public let bottom: Double
    /// Where a line of text ends.
    public let trailing: Double

    /// Insets; one that is not finite counts as 0.
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
    /// As text runs.
    case top, leading, bottom, trailing

    /// Several edges.
    public struct Set: OptionSet, Sendable {
        /// The edges as bits.
        public let rawValue: Int8

        /// The edges with these bits.
        public init(rawValue: Int8) { self.rawValue = rawValue }

        /// Above.
        public static let top = Set(rawValue: 1)
        /// Where a line of text begins.
        public static let leading = Set(rawValue: 2)
        /// Below.
        public static let bottom = Set(rawValue: 4)
        /// Where a line of text ends.
        public static let trailing = Set(rawValue: 8)
        /// Left and right.
        public static let horizontal: Set = [.leading, .trailing]
        /// Above and below.
        public static let vertical: Set = [.top, .bottom]
        /// Everywhere.
        public static let all: Set = [.horizontal, .vertical]
    }
}

/// Where the parts of a ``VStack`` stand.
public enum HorizontalAlignment: Sendable, Hashable {
    /// As text runs.
    case leading, center, trailing

    var stack: WidgetStyle.StackAlignment? {
        switch self {
        case .leading: .leading
        case .center: nil
        case .trailing: .trailing
        }
    }
}

/// Where the parts of an ``HStack`` stand.
public enum VerticalAlignment: Sendable, Hashable {
    /// By their edges, or by their texts.
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

/// Where the parts of a ``ZStack`` stand.
public enum Alignment: Sendable, Hashable {
    /// By their middles, their edges or their corners.
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
