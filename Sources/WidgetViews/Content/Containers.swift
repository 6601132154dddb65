import Foundation

/// Views that get the same modifiers.
public struct Group<Content: View>: PrimitiveView {
    private let content: Content

    /// Creates a group.
    public init(@ViewBuilder content: () -> Content) { self.content = content() }

    var nodes: [WidgetNode] { content.drawn }
}

/// A horizontal stack. In a widget everything is drawn at once, so it is an ``HStack``.
public typealias LazyHStack = HStack
/// A vertical stack. In a widget everything is drawn at once, so it is a ``VStack``.
public typealias LazyVStack = VStack

/// Rows from top to bottom whose cells share their columns. A view that is no ``GridRow`` spans all
/// of them.
public struct Grid<Content: View>: PrimitiveView {
    private let content: Content
    private var style = WidgetStyle()

    /// Creates a grid.
    ///
    /// - Parameters:
    ///   - horizontalSpacing: The space between columns, in points; it is not archived.
    ///   - verticalSpacing: The space between rows, in points; `nil` for the default.
    public init(
        alignment: Alignment = .center, horizontalSpacing: Double? = nil,
        verticalSpacing: Double? = nil, @ViewBuilder content: () -> Content
    ) {
        self.content = content()
        style.alignment = alignment.stack
        style.spacing = verticalSpacing.flatMap { $0.isFinite ? $0 : nil }
    }

    var nodes: [WidgetNode] { [WidgetNode(.stack(.grid, content.drawn), style: style)] }
}

/// A row of a ``Grid``.
public struct GridRow<Content: View>: PrimitiveView {
    private let content: Content
    private var style = WidgetStyle()

    /// Creates a row.
    public init(alignment: VerticalAlignment = .center, @ViewBuilder content: () -> Content) {
        self.content = content()
        style.alignment = alignment.stack
    }

    var nodes: [WidgetNode] { [WidgetNode(.stack(.gridRow, content.drawn), style: style)] }
}

/// A column of a ``LazyVGrid``, or a row of a ``LazyHGrid``.
public struct GridItem: Sendable {
    /// One column or row, or as many as fit. No layout is known when it is archived: a column is as
    /// wide as its cells, and what adapts divides the whole widget.
    public enum Size: Sendable {
        /// One column or row of this size.
        case fixed(Double)
        /// One column or row between these sizes.
        case flexible(minimum: Double = 10, maximum: Double = .infinity)
        /// As many columns or rows of at least `minimum` points as fit.
        case adaptive(minimum: Double, maximum: Double = .infinity)
    }

    let size: Size

    /// Creates a column or row. Its spacing and alignment are not archived.
    public init(_ size: Size = .flexible(), spacing: Double? = nil, alignment: Alignment? = nil) {
        self.size = size
    }

    func count(in space: Double) -> Int {
        guard case .adaptive(let minimum, _) = size else { return 1 }
        let fitting = (space + 8) / (minimum + 8)
        return fitting >= 1 && fitting < 100 ? Int(fitting) : 1
    }
}

/// Cells that fill the rows of a grid, or its columns, one after the other. In a widget everything
/// is drawn at once, so it is a ``Grid``.
public struct LazyGrid<Content: View>: PrimitiveView {
    private let items: [GridItem]
    private let fillsRows: Bool
    private let content: Content
    private var style = WidgetStyle()

    /// Creates a grid with these columns. The spacing is that between rows, in points.
    public init(
        columns: [GridItem], alignment: HorizontalAlignment = .center, spacing: Double? = nil,
        @ViewBuilder content: () -> Content
    ) {
        (items, fillsRows, self.content) = (columns, true, content())
        style.alignment = alignment.stack
        style.spacing = spacing.flatMap { $0.isFinite ? $0 : nil }
    }

    /// Creates a grid with these rows. The spacing, between columns, is not archived.
    public init(
        rows: [GridItem], alignment: VerticalAlignment = .center, spacing: Double? = nil,
        @ViewBuilder content: () -> Content
    ) {
        (items, fillsRows, self.content) = (rows, false, content())
    }

    var nodes: [WidgetNode] {
        let (size, cells) = (WidgetEnvironment.drawn?.displaySize ?? .zero, content.drawn)
        let space = Double(fillsRows ? size.width : size.height)
        let count = max(1, items.map { $0.count(in: space) }.reduce(0, +))
        let rowCount = fillsRows ? (cells.count + count - 1) / count : count
        let rows = (0..<rowCount).map { row in
            let places = cells.indices.filter { (fillsRows ? $0 / count : $0 % count) == row }
            return WidgetNode(.stack(.gridRow, places.map { cells[$0] }))
        }
        return [WidgetNode(.stack(.grid, rows), style: style)]
    }
}

/// A grid that grows downwards.
public typealias LazyVGrid = LazyGrid
/// A grid that grows sideways.
public typealias LazyHGrid = LazyGrid

/// Alternative views: the first one that fits into the space is shown.
public struct ViewThatFits<Content: View>: PrimitiveView {
    private let content: Content

    /// Creates a choice, the views that need most space first.
    public init(@ViewBuilder content: () -> Content) { self.content = content() }

    var nodes: [WidgetNode] { [WidgetNode(.stack(.firstThatFits, content.drawn))] }
}

/// The values that a ``GeometryReader`` gives its content.
public struct GeometryProxy: Sendable, Hashable {
    /// The size of the widget's content, in points.
    public let size: CGSize
}

/// A view that depends on the size of the widget. No layout is known when a widget is archived, so
/// the size is that of the widget's whole content, also inside of other views.
public struct GeometryReader<Content: View>: PrimitiveView {
    private let content: (GeometryProxy) -> Content

    /// Creates a view from a function of the size.
    public init(@ViewBuilder content: @escaping (GeometryProxy) -> Content) {
        self.content = content
    }

    var nodes: [WidgetNode] {
        var style = WidgetStyle()
        style.alignment = .topLeading
        let proxy = GeometryProxy(size: WidgetEnvironment.drawn?.displaySize ?? .zero)
        return [WidgetNode(.stack(.depth, content(proxy).drawn), style: style)]
    }
}
