/// A color or gradient that fills shapes, texts and backgrounds.
public protocol ShapeStyle: Sendable {
    /// The color or gradient as it is archived.
    var paint: Paint { get }
}

extension Color: ShapeStyle {
    /// The color itself.
    public var paint: Paint { .color(self) }
    /// A gradient from a lighter to a darker tone of the color, which the renderer chooses.
    public var gradient: LinearGradient {
        LinearGradient(colors: [opacity(0.8), self], startPoint: .top, endPoint: .bottom)
    }
    /// The color as it is used for secondary content.
    public var secondary: Color { opacity(0.5) }
    /// The color as it is used for tertiary content.
    public var tertiary: Color { opacity(0.25) }
    /// The color as it is used for quaternary content.
    public var quaternary: Color { opacity(0.15) }
}

/// The names of colors and materials. The renderer chooses their colors.
extension ShapeStyle where Self == Color {
    /// The color of primary content.
    public static var primary: Color { Color("primary") }
    /// The color of secondary content.
    public static var secondary: Color { Color("secondary") }
    /// The color of tertiary content.
    public static var tertiary: Color { Color("tertiary") }
    /// The color of quaternary content.
    public static var quaternary: Color { Color("quaternary") }
    /// The color of controls.
    public static var tint: Color { Color("tint") }
    /// The color of the foreground.
    public static var foreground: Color { Color("foreground") }
    /// The color of the background.
    public static var background: Color { Color("background") }
    /// The color of filled shapes.
    public static var fill: Color { Color("fill") }
    /// The color of lines between parts.
    public static var separator: Color { Color("separator") }
    /// A material that shows almost all that is behind it.
    public static var ultraThinMaterial: Color { Color("ultraThinMaterial") }
    /// A material that shows much of what is behind it.
    public static var thinMaterial: Color { Color("thinMaterial") }
    /// A material that shows some of what is behind it.
    public static var regularMaterial: Color { Color("regularMaterial") }
    /// A material that shows little of what is behind it.
    public static var thickMaterial: Color { Color("thickMaterial") }
    /// White.
    public static var white: Color { Color("white") }
    /// Black.
    public static var black: Color { Color("black") }
    /// Gray.
    public static var gray: Color { Color("gray") }
    /// Red.
    public static var red: Color { Color("red") }
    /// Orange.
    public static var orange: Color { Color("orange") }
    /// Yellow.
    public static var yellow: Color { Color("yellow") }
    /// Green.
    public static var green: Color { Color("green") }
    /// Blue.
    public static var blue: Color { Color("blue") }
    /// Purple.
    public static var purple: Color { Color("purple") }
    /// Pink.
    public static var pink: Color { Color("pink") }
    /// Mint.
    public static var mint: Color { Color("mint") }
    /// Teal.
    public static var teal: Color { Color("teal") }
    /// Cyan.
    public static var cyan: Color { Color("cyan") }
    /// Indigo.
    public static var indigo: Color { Color("indigo") }
    /// Brown.
    public static var brown: Color { Color("brown") }
    /// No color.
    public static var clear: Color { Color("clear") }
}

/// A point of a view, as parts of its size from the leading edge and from the top.
public struct UnitPoint: Sendable, Hashable {
    /// The part of the width.
    public var x: Double
    /// The part of the height.
    public var y: Double

    /// Creates a point.
    public init(x: Double, y: Double) { (self.x, self.y) = (x, y) }

    /// A corner, or the middle of an edge, named for the direction of text.
    public static let (topLeading, top, topTrailing) = (
        UnitPoint(x: 0, y: 0), UnitPoint(x: 0.5, y: 0), UnitPoint(x: 1, y: 0)
    )
    /// The middle, or that of an edge, named for the direction of text.
    public static let (leading, center, trailing) = (
        UnitPoint(x: 0, y: 0.5), UnitPoint(x: 0.5, y: 0.5), UnitPoint(x: 1, y: 0.5)
    )
    /// A corner, or the middle of an edge, named for the direction of text.
    public static let (bottomLeading, bottom, bottomTrailing) = (
        UnitPoint(x: 0, y: 1), UnitPoint(x: 0.5, y: 1), UnitPoint(x: 1, y: 1)
    )
}

/// An angle.
public struct Angle: Sendable, Hashable {
    /// The angle in degrees.
    public var degrees: Double

    /// Creates an angle of degrees.
    public init(degrees: Double) { self.degrees = degrees }

    /// Returns an angle of degrees.
    public static func degrees(_ degrees: Double) -> Angle { Angle(degrees: degrees) }
}

/// A gradient as a style, and as a view that fills the space it gets.
protocol GradientStyle: ShapeStyle, PrimitiveView {
    var shading: Shading { get }
}

extension GradientStyle {
    /// The gradient as it is archived.
    public var paint: Paint { .shading(shading) }
    var nodes: [WidgetNode] { [WidgetNode(.shape(Figure(.rectangle, paint: paint)))] }
}

/// A gradient along a line.
public struct LinearGradient: GradientStyle {
    let shading: Shading

    /// Creates a gradient from one point to another.
    public init(gradient: Gradient, startPoint: UnitPoint, endPoint: UnitPoint) {
        shading = Shading(
            .linear, gradient, [startPoint.x, startPoint.y, endPoint.x, endPoint.y])
    }

    /// Creates a gradient of colors at equal distances.
    public init(colors: [Color], startPoint: UnitPoint, endPoint: UnitPoint) {
        self.init(
            gradient: Gradient(colors: colors), startPoint: startPoint, endPoint: endPoint)
    }
}

/// A gradient from a center outwards.
public struct RadialGradient: GradientStyle {
    let shading: Shading

    /// Creates a gradient from one radius to another, in points.
    public init(gradient: Gradient, center: UnitPoint, startRadius: Double, endRadius: Double) {
        shading = Shading(.radial, gradient, [center.x, center.y, startRadius, endRadius])
    }

    /// Creates a gradient of colors at equal distances.
    public init(colors: [Color], center: UnitPoint, startRadius: Double, endRadius: Double) {
        self.init(
            gradient: Gradient(colors: colors), center: center, startRadius: startRadius,
            endRadius: endRadius)
    }
}

/// A gradient around a center.
public struct AngularGradient: GradientStyle {
    let shading: Shading

    /// Creates a gradient of colors at equal angles.
    public init(
        colors: [Color], center: UnitPoint, startAngle: Angle = .degrees(0),
        endAngle: Angle = .degrees(360)
    ) {
        shading = Shading(
            .angular, Gradient(colors: colors),
            [center.x, center.y, startAngle.degrees, endAngle.degrees])
    }
}
