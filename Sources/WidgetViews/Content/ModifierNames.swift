// The choices of modifiers, with the platform's names; archives keep them as they are.

/// The way in which content of another ratio gets its space: all of it is seen, or all is filled.
public enum ContentMode: String, Sendable, Hashable {
    case fit, fill
}

/// The alignment of the lines of a text.
public typealias TextAlignment = HorizontalAlignment

/// The place where a text that does not fit is cut.
public enum TruncationMode: String, Sendable, Hashable {
    case head, middle, tail
}

/// The case in which a text is shown.
public enum TextCase: String, Sendable, Hashable {
    case uppercase, lowercase
}

/// The size of images that the system provides, relative to the text beside them.
public enum ImageScale: String, Sendable, Hashable {
    case small, medium, large
}

/// The coloring of images that the system provides.
public enum SymbolRenderingMode: String, Sendable, Hashable {
    case monochrome, hierarchical, palette, multicolor
}

/// The style of a gauge.
public enum GaugeStyle: String, Sendable, Hashable {
    case automatic, linearCapacity, accessoryLinear, accessoryLinearCapacity, accessoryCircular,
        accessoryCircularCapacity, circular
}

/// The style of a progress view.
public enum ProgressViewStyle: String, Sendable, Hashable {
    case automatic, linear, circular
}

/// The parts of a label that are shown.
public enum LabelStyle: Sendable, Hashable {
    case automatic, titleAndIcon, titleOnly, iconOnly
}

/// The way in which a changed content replaces the former.
public enum ContentTransition: String, Sendable, Hashable {
    case identity, opacity, interpolate
    /// Digit by digit, upwards or downwards.
    case numericTextUp = "numericText", numericTextDown = "numericText down"

    /// Digit by digit.
    public static func numericText(countsDown: Bool = false) -> Self {
        countsDown ? .numericTextDown : .numericTextUp
    }
    /// Digit by digit, in the direction that the renderer finds.
    public static func numericText(value: Double) -> Self { .numericTextUp }
}

/// The way in which a view comes and goes.
public struct AnyTransition: RawRepresentable, Sendable, Hashable {
    /// The name in archives.
    public let rawValue: String
    /// Creates a transition from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// At once, by fading, by growing and shrinking, or from the leading edge to the trailing one.
    public static let (identity, opacity, scale, slide) = (
        Self(rawValue: "identity"), Self(rawValue: "opacity"), Self(rawValue: "scale"),
        Self(rawValue: "slide")
    )
    /// In from an edge and out to it.
    public static func move(edge: Edge) -> Self { Self(rawValue: "move \(edge)") }
    /// In from an edge, which moves the former content out.
    public static func push(from edge: Edge) -> Self { Self(rawValue: "push \(edge)") }
}

/// The course of a change: its name, and its seconds where they are given.
public struct Animation: RawRepresentable, Sendable, Hashable {
    /// The name in archives.
    public let rawValue: String
    /// Creates an animation from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    private init(_ name: String, _ seconds: Double? = nil) {
        rawValue = seconds.map { "\(name) \($0)" } ?? name
    }

    /// The system's course; the same speed; slow at first, at the end, or at both ends.
    public static let (`default`, linear, easeIn, easeOut, easeInOut) = (
        Self("default"), Self("linear"), Self("easeIn"), Self("easeOut"), Self("easeInOut")
    )
    /// A spring that does not bounce, does a little, or does.
    public static let (smooth, snappy, bouncy) = (Self("smooth"), Self("snappy"), Self("bouncy"))
    /// A spring that takes some seconds.
    public static func spring(duration: Double = 0.5) -> Self { Self("spring", duration) }
    /// At the same speed for some seconds.
    public static func linear(duration: Double) -> Self { Self("linear", duration) }
    /// Slow at first, for some seconds.
    public static func easeIn(duration: Double) -> Self { Self("easeIn", duration) }
    /// Slow at the end, for some seconds.
    public static func easeOut(duration: Double) -> Self { Self("easeOut", duration) }
    /// Slow at both ends, for some seconds.
    public static func easeInOut(duration: Double) -> Self { Self("easeInOut", duration) }
}
