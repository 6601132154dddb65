/// A shape as it is archived: it fills the space that it gets.
public struct Figure: Sendable, Hashable, Codable {
    /// The form of a shape.
    public enum Kind: String, Sendable, Hashable, Codable {
        case rectangle, roundedRectangle, circle, ellipse, capsule
        /// The outline of the widget.
        case containerRelative
        /// A line between the parts of a stack.
        case divider
        /// The background that accessory widgets share.
        case accessoryBackground
    }

    /// The form.
    public var kind: Kind
    /// The radius of the corners, in points.
    public var cornerRadius: Double?
    /// The fill; `nil` for the foreground's.
    public var paint: Paint?
    /// The width of the line that draws the outline; `nil` for a filled shape.
    public var lineWidth: Double?
    /// The part of the outline that is drawn: from and to, 0 to 1; `nil` for all of it.
    public var trim: [Double]?

    /// Creates a shape.
    public init(_ kind: Kind, cornerRadius: Double? = nil, paint: Paint? = nil) {
        self.kind = kind
        self.cornerRadius = cornerRadius.flatMap { $0.isFinite ? max(0, $0) : nil }
        self.paint = paint
    }

    /// Whether no number is missing. In an archive some may be.
    var isWhole: Bool {
        if case .shading(let shading) = paint, !shading.isWhole { return false }
        return trim.map { $0.count == 2 } ?? true
    }
}

/// The fill of a shape or a text.
public enum Paint: Sendable, Hashable, Codable {
    /// A single color.
    case color(Color)
    /// A gradient.
    case shading(Shading)
}

/// A gradient as it is archived.
public struct Shading: Sendable, Hashable, Codable {
    /// The way in which the colors follow each other.
    public enum Kind: String, Sendable, Hashable, Codable {
        /// Along a line: from x, y to x, y.
        case linear
        /// From a center outwards: x, y, the first radius and the last, in points.
        case radial
        /// Around a center: x, y, the first angle and the last, in degrees.
        case angular
    }

    /// The kind of the gradient.
    public let kind: Kind
    /// The colors with their places, 0 to 1.
    public let stops: [Gradient.Stop]
    /// The four numbers that the kind explains; x and y are parts of the size.
    public let geometry: [Double]

    /// Whether all four are there; an archive may lack some.
    var isWhole: Bool { geometry.count == 4 }

    init(_ kind: Kind, _ gradient: Gradient, _ geometry: [Double]) {
        self.kind = kind
        stops = gradient.stops
        self.geometry = geometry.map { $0.isFinite ? $0 : 0 }
    }
}

/// Colors with their places.
public struct Gradient: Sendable, Hashable {
    /// A color with its place.
    public struct Stop: Sendable, Hashable, Codable {
        /// The color.
        public let color: Color
        /// The place, 0 to 1.
        public let location: Double

        /// Creates a color with its place.
        public init(color: Color, location: Double) {
            self.color = color
            self.location = location.isFinite ? location : 0
        }
    }

    /// The colors with their places.
    public var stops: [Stop]

    /// Creates a gradient of colors with their places.
    public init(stops: [Stop]) { self.stops = stops }

    /// Creates a gradient of colors at equal distances.
    public init(colors: [Color]) {
        let last = Double(max(1, colors.count - 1))
        stops = colors.enumerated().map { Stop(color: $1, location: Double($0) / last) }
    }
}
