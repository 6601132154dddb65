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
