/// A widget of an app (article "Creating a widget extension", "Add a widget target to your app").
public protocol Widget: Sendable {
    /// The type of ``body``.
    associatedtype Body: WidgetConfiguration

    /// Creates the widget.
    init()
    /// The declaration of the widget.
    var body: Body { get }
}

/// The widgets of one extension (article "Creating a widget extension", "Create multiple widget
/// extensions").
public protocol WidgetBundle: Sendable {
    /// Creates the bundle.
    init()
    /// The widgets in order.
    @WidgetBundleBuilder var body: [any Widget] { get }
}

/// Builds the body of a ``WidgetBundle``.
@resultBuilder
public enum WidgetBundleBuilder {
    /// Returns a single widget as a list.
    public static func buildExpression(_ widget: any Widget) -> [any Widget] { [widget] }
    /// Returns all widgets in order.
    public static func buildBlock(_ widgets: [any Widget]...) -> [any Widget] {
        widgets.flatMap { $0 }
    }
    /// Returns the widgets of an `if` without `else`; none when its condition is false.
    public static func buildOptional(_ widgets: [any Widget]?) -> [any Widget] { widgets ?? [] }
    /// Returns the widgets of the first branch.
    public static func buildEither(first widgets: [any Widget]) -> [any Widget] { widgets }
    /// Returns the widgets of the second branch.
    public static func buildEither(second widgets: [any Widget]) -> [any Widget] { widgets }
    /// Returns the widgets guarded by an availability check.
    public static func buildLimitedAvailability(_ widgets: [any Widget]) -> [any Widget] {
        widgets
    }
}

extension WidgetRuntime {
    /// Creates a runtime for the widgets of a bundle.
    ///
    /// - Parameter intents: The intents that the widgets' buttons and toggles perform.
    /// - Throws: ``WidgetDeclarationError``.
    public init(
        _ bundle: some WidgetBundle, intents: [any AppIntent.Type] = []
    ) throws(WidgetDeclarationError) {
        try self.init(
            bundle.body.map { $0.body as any WidgetConfiguration }, intents: intents)
    }
}

/// The faults in an app's widget declarations.
public struct WidgetDeclarationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The faults, each with the kind and, where applicable, the parameter's name.
    public let faults: [String]

    /// All faults in one line.
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
