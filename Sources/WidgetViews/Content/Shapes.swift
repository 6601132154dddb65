/// A shape that fills the space it gets. A path of one's own is not archived.
public protocol Shape: View, Sendable {
    /// The shape as it is archived.
    var figure: Figure { get }
}

extension PrimitiveView where Self: Shape {
    var nodes: [WidgetNode] { [WidgetNode(.shape(figure))] }
}

/// A shape that a modifier changed.
struct FigureShape: Shape, PrimitiveView {
    var figure: Figure
}

extension Shape {
    private func with(_ change: (inout Figure) -> Void) -> FigureShape {
        var figure = figure
        change(&figure)
        return FigureShape(figure: figure)
    }

    /// Fills the shape.
    public func fill(_ style: some ShapeStyle) -> some Shape { with { $0.paint = style.paint } }

    /// Draws the outline of the shape.
    public func stroke(_ style: some ShapeStyle, lineWidth: Double = 1) -> some Shape {
        with {
            $0.paint = style.paint
            $0.lineWidth = lineWidth.isFinite ? max(0, lineWidth) : 1
        }
    }

    /// Draws the outline of the shape, inside of it.
    public func strokeBorder(_ style: some ShapeStyle, lineWidth: Double = 1) -> some Shape {
        stroke(style, lineWidth: lineWidth)
    }

    /// Draws a part of the outline, 0 to 1.
    public func trim(from start: Double = 0, to end: Double = 1) -> some Shape {
        with { $0.trim = [clamped(start), clamped(end)] }
    }
}

/// A rectangle.
public struct Rectangle: Shape, PrimitiveView {
    /// The shape as it is archived.
    public let figure = Figure(.rectangle)
    /// Creates a rectangle.
    public init() {}
}

/// A rectangle with round corners.
public struct RoundedRectangle: Shape, PrimitiveView {
    /// The shape as it is archived.
    public let figure: Figure

    /// Creates a rectangle with corners of a radius, in points.
    public init(cornerRadius: Double) {
        figure = Figure(.roundedRectangle, cornerRadius: cornerRadius)
    }
}

/// A circle.
public struct Circle: Shape, PrimitiveView {
    /// The shape as it is archived.
    public let figure = Figure(.circle)
    /// Creates a circle.
    public init() {}
}

/// An ellipse.
public struct Ellipse: Shape, PrimitiveView {
    /// The shape as it is archived.
    public let figure = Figure(.ellipse)
    /// Creates an ellipse.
    public init() {}
}

/// A rectangle whose shorter sides are half circles.
public struct Capsule: Shape, PrimitiveView {
    /// The shape as it is archived.
    public let figure = Figure(.capsule)
    /// Creates a capsule.
    public init() {}
}

/// The outline of the widget.
public struct ContainerRelativeShape: Shape, PrimitiveView {
    /// The shape as it is archived.
    public let figure = Figure(.containerRelative)
    /// Creates the outline.
    public init() {}
}

extension Shape where Self == RoundedRectangle {
    /// Returns a rectangle with corners of a radius, in points.
    public static func rect(cornerRadius: Double) -> RoundedRectangle {
        RoundedRectangle(cornerRadius: cornerRadius)
    }
}

extension Shape where Self == Circle {
    /// A circle.
    public static var circle: Circle { Circle() }
}

extension Shape where Self == Capsule {
    /// A capsule.
    public static var capsule: Capsule { Capsule() }
}
