/// A widget of an app (article "Creating a widget extension", "Add a widget target to your app").
public protocol Widget: Sendable {
    /// What ``body`` is.
    associatedtype Body: WidgetConfiguration

    /// The widget.
    init()
    /// Its declaration.
    var body: Body { get }
}

/// The widgets of one extension (article "Creating a widget extension", "Create multiple widget
/// extensions").
public protocol WidgetBundle: Sendable {
    /// The bundle.
    init()
    /// The widgets, one after the other.
    @WidgetBundleBuilder var body: [any Widget] { get }
}

/// Builds the body of a ``WidgetBundle``.
@resultBuilder
public enum WidgetBundleBuilder {
    /// One widget.
    public static func buildExpression(_ widget: any Widget) -> [any Widget] { [widget] }
    /// All of them, in their order.
    public static func buildBlock(_ widgets: [any Widget]...) -> [any Widget] {
        widgets.flatMap { $0 }
    }
    /// Those of a condition that holds.
    public static func buildOptional(_ widgets: [any Widget]?) -> [any Widget] { widgets ?? [] }
    /// Those of the first branch.
    public static func buildEither(first widgets: [any Widget]) -> [any Widget] { widgets }
    /// Those of the second branch.
    public static func buildEither(second widgets: [any Widget]) -> [any Widget] { widgets }
    /// Those that this version of the system has.
    public static func buildLimitedAvailability(_ widgets: [any Widget]) -> [any Widget] {
        widgets
    }
}

extension WidgetRuntime {
    /// The widgets of a bundle.
    ///
    /// - Parameter intents: What buttons and toggles of the widgets perform.
    /// - Throws: ``WidgetDeclarationError``.
    public init(
        _ bundle: some WidgetBundle, intents: [any AppIntent.Type] = []
    ) throws(WidgetDeclarationError) {
        try self.init(
            bundle.body.map { $0.body as any WidgetConfiguration }, intents: intents)
    }
}

/// What is wrong with the widgets that an app declares.
public struct WidgetDeclarationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Each fault, with the kind and, where it is about one, the parameter's name.
    public let faults: [String]

    /// All of them.
    public var description: String { faults.joined(separator: "; ") }

    init(fault: String) { faults = [fault] }

    init?(_ declarations: [AnyWidgetConfiguration]) {
        var faults: [String] = []
        var kinds: Set<String> = []
        for declaration in declarations {
            let kind = declaration.kind
            if kind.isEmpty { faults.append("a widget has no kind") }
            if !kinds.insert(kind).inserted { faults.append("\(kind): declared twice") }
            if declaration.traits.supportedFamilies?.isEmpty ?? false {
                faults.append("\(kind): supports no family")
            }
            for parameter in declaration.parameters where !parameter.hasDefault {
                faults.append(
                    "\(kind): the parameter `\(parameter.name)` of "
                        + "\(declaration.intent ?? "its intent") is not optional and has no "
                        + "default; give it one with `default:`, or let the query of its type "
                        + "implement `defaultResult()`")
            }
        }
        guard !faults.isEmpty else { return nil }
        self.faults = faults
    }
}
