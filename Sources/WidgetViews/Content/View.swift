/// A part of a widget's content, composed of other parts.
///
/// Shaped like SwiftUI's protocol, with the views that make sense in a widget: a description that
/// is drawn once and stored, not code that runs while the widget is visible (article "Creating a
/// widget extension", "Display content in your widget").
public protocol View: SendableMetatype {
    /// The type of ``body``.
    associatedtype Body: View

    /// The views that this view is composed of.
    @ViewBuilder var body: Body { get }
}

/// A view that is drawn directly and has no body.
protocol PrimitiveView: View where Body == Never {
    /// The nodes that the view is drawn as, in order.
    var nodes: [WidgetNode] { get }
}

extension Never: View {
    /// Never called: the type has no values.
    public var body: Never { fatalError("Never has no value") }
}

extension PrimitiveView {
    /// Never called: primitive views are drawn from their nodes.
    public var body: Never { fatalError("a primitive view is made of nothing") }
}

extension View {
    /// The nodes that a view is drawn as in the current environment.
    var drawn: [WidgetNode] {
        if let primitive = self as? any PrimitiveView { return primitive.nodes }
        return body.drawn
    }

    /// The single node that a view is drawn as. Several nodes are put into a vertical stack.
    var drawnAsOne: WidgetNode {
        let nodes = drawn
        return nodes.count == 1 ? nodes[0] : WidgetNode(.stack(.vertical, nodes))
    }

    /// Changes the nodes after they are drawn. Of the values that a node gives to its parts, the
    /// innermost wins.
    func changed(_ change: @escaping (inout WidgetNode) -> Void) -> DrawnView {
        DrawnView {
            self.drawn.map { node in
                var node = node
                change(&node)
                return node
            }
        }
    }
}

/// A view that is known only by its drawing: the label of a control whose appearance an
/// app draws itself, or what a ``ViewModifier`` changes.
public struct DrawnView: PrimitiveView {
    let draw: () -> [WidgetNode]

    var nodes: [WidgetNode] { draw() }
}

/// Combines views into a sequence.
@resultBuilder
public enum ViewBuilder {
    /// Returns a view without content.
    public static func buildBlock() -> EmptyView { EmptyView() }
    /// Returns the view unchanged.
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    /// Returns the views in their order.
    public static func buildBlock<each Content: View>(
        _ content: repeat each Content
    ) -> TupleView<repeat each Content> {
        TupleView(repeat each content)
    }
    /// Returns the view of an `if` without `else`; `nil` when its condition is false.
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    /// Returns the view of the first branch.
    public static func buildEither<First: View, Second: View>(
        first: First
    ) -> ConditionalView<First, Second> { .first(first) }
    /// Returns the view of the second branch.
    public static func buildEither<First: View, Second: View>(
        second: Second
    ) -> ConditionalView<First, Second> { .second(second) }
    /// Returns the view guarded by an availability check.
    public static func buildLimitedAvailability(_ content: some View) -> some View { content }
}

/// A view without content.
public struct EmptyView: PrimitiveView {
    /// Creates a view without content.
    public init() {}
    var nodes: [WidgetNode] { [] }
}

/// A sequence of views.
public struct TupleView<each Content: View>: PrimitiveView {
    private let content: (repeat each Content)

    init(_ content: repeat each Content) { self.content = (repeat each content) }

    var nodes: [WidgetNode] {
        var nodes: [WidgetNode] = []
        for view in repeat each content { nodes += view.drawn }
        return nodes
    }
}

/// The view of one of two branches.
public enum ConditionalView<First: View, Second: View>: PrimitiveView {
    /// The view of the first branch.
    case first(First)
    /// The view of the second branch.
    case second(Second)

    var nodes: [WidgetNode] {
        switch self {
        case .first(let view): view.drawn
        case .second(let view): view.drawn
        }
    }
}

extension Optional: View where Wrapped: View {
    /// Never called: primitive views are drawn from their nodes.
    public var body: Never { fatalError("a primitive view is made of nothing") }
}

extension Optional: PrimitiveView where Wrapped: View {
    var nodes: [WidgetNode] { map(\.drawn) ?? [] }
}

/// A view for each element of a collection.
public struct ForEach<Data: RandomAccessCollection, Content: View>: PrimitiveView {
    private let data: Data
    private let content: (Data.Element) -> Content

    /// Creates a view for each element, in the order of the collection.
    public init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content) {
        self.data = data
        self.content = content
    }

    /// Creates a view for each element, in the order of the collection.
    ///
    /// - Parameter id: The path of an element's name, which is not archived.
    public init(
        _ data: Data, id: KeyPath<Data.Element, some Hashable>,
        @ViewBuilder content: @escaping (Data.Element) -> Content
    ) {
        self.init(data, content: content)
    }

    var nodes: [WidgetNode] { data.flatMap { content($0).drawn } }
}
