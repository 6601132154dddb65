/// A part of what a widget shows, made of other parts.
///
/// Shaped like SwiftUI's, with the views that make sense in a widget: a description that is drawn
/// once and kept, not code that runs while the widget is seen (article "Creating a widget
/// extension", "Display content in your widget").
public protocol View {
    /// What ``body`` is.
    associatedtype Body: View

    /// What it is made of.
    @ViewBuilder var body: Body { get }
}

/// A view that is made of nothing else.
protocol PrimitiveView: View where Body == Never {
    /// The nodes it is drawn as, one after the other.
    var nodes: [WidgetNode] { get }
}

extension Never: View {
    /// There is none.
    public var body: Never { fatalError("Never has no value") }
}

extension PrimitiveView {
    /// There is none: what it is drawn as is asked instead.
    public var body: Never { fatalError("a primitive view is made of nothing") }
}

extension View {
    /// The nodes that a view is drawn as in the current environment.
    var drawn: [WidgetNode] {
        if let primitive = self as? any PrimitiveView { return primitive.nodes }
        return body.drawn
    }

    /// The one node that a view is drawn as: several stand one below the other.
    var drawnAsOne: WidgetNode {
        let nodes = drawn
        return nodes.count == 1 ? nodes[0] : WidgetNode(.stack(.vertical, nodes))
    }
}

/// Puts views one after the other.
@resultBuilder
public enum ViewBuilder {
    /// Nothing.
    public static func buildBlock() -> EmptyView { EmptyView() }
    /// The one view.
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    /// The views in their order.
    public static func buildBlock<each Content: View>(
        _ content: repeat each Content
    ) -> TupleView<repeat each Content> {
        TupleView(repeat each content)
    }
    /// The view of a condition that holds.
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    /// The view of the first branch.
    public static func buildEither<First: View, Second: View>(
        first: First
    ) -> ConditionalView<First, Second> { .first(first) }
    /// The view of the second branch.
    public static func buildEither<First: View, Second: View>(
        second: Second
    ) -> ConditionalView<First, Second> { .second(second) }
    /// The view that this version of the system has.
    public static func buildLimitedAvailability(_ content: some View) -> some View { content }
}

/// Nothing to see.
public struct EmptyView: PrimitiveView {
    /// Nothing to see.
    public init() {}
    var nodes: [WidgetNode] { [] }
}

/// Views one after the other.
public struct TupleView<each Content: View>: PrimitiveView {
    private let content: (repeat each Content)

    init(_ content: repeat each Content) { self.content = (repeat each content) }

    var nodes: [WidgetNode] {
        var nodes: [WidgetNode] = []
        for view in repeat each content { nodes += view.drawn }
        return nodes
    }
}

/// One of two views.
public enum ConditionalView<First: View, Second: View>: PrimitiveView {
    /// The first.
    case first(First)
    /// The second.
    case second(Second)

    var nodes: [WidgetNode] {
        switch self {
        case .first(let view): view.drawn
        case .second(let view): view.drawn
        }
    }
}

extension Optional: View where Wrapped: View {
    /// There is none: what it is drawn as is asked instead.
    public var body: Never { fatalError("a primitive view is made of nothing") }
}

extension Optional: PrimitiveView where Wrapped: View {
    var nodes: [WidgetNode] { map(\.drawn) ?? [] }
}

/// A view for each element.
public struct ForEach<Data: RandomAccessCollection, Content: View>: PrimitiveView {
    private let data: Data
    private let content: (Data.Element) -> Content

    /// A view for each element, in their order.
    public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) {
        self.data = data
        self.content = content
    }

    var nodes: [WidgetNode] { data.flatMap { content($0).drawn } }
}
