import WidgetViews

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
    /// The type of ``body``.
    associatedtype Body: Widget

    /// Creates the bundle.
    init()
    /// The widgets and controls in order.
    @WidgetBundleBuilder var body: Body { get }
}

/// Several widgets and controls in the place of one.
public struct WidgetGroup: Widget {
    var widgets: [any WidgetConfiguration] = []
    var controls: [any ControlWidgetConfiguration] = []

    /// Creates an empty group.
    public init() {}

    /// Never shown: a runtime takes the group apart.
    public var body: some WidgetConfiguration { EmptyWidgetConfiguration() }

    init(_ widget: some Widget) {
        if let group = widget as? WidgetGroup { self = group } else { widgets = [widget.body] }
    }

    init(_ groups: [WidgetGroup]) {
        widgets = groups.flatMap(\.widgets)
        controls = groups.flatMap(\.controls)
    }
}

/// Builds the body of a ``WidgetBundle``.
@resultBuilder
public enum WidgetBundleBuilder {
    /// Returns a single widget as a group.
    public static func buildExpression(_ widget: some Widget) -> WidgetGroup {
        WidgetGroup(widget)
    }
    /// Returns the widgets of another bundle.
    public static func buildExpression(_ bundle: some WidgetBundle) -> WidgetGroup {
        WidgetGroup(bundle.body)
    }
    /// Returns a single control as a group.
    public static func buildExpression(_ control: some ControlWidget) -> WidgetGroup {
        var group = WidgetGroup()
        group.controls = [control.body]
        return group
    }
    /// Returns all widgets in order.
    public static func buildBlock(_ groups: WidgetGroup...) -> WidgetGroup { WidgetGroup(groups) }
    /// Returns the widgets of an `if` without `else`; none when its condition is false.
    public static func buildOptional(_ group: WidgetGroup?) -> WidgetGroup { group ?? .init() }
    /// Returns the widgets of the first branch.
    public static func buildEither(first group: WidgetGroup) -> WidgetGroup { group }
    /// Returns the widgets of the second branch.
    public static func buildEither(second group: WidgetGroup) -> WidgetGroup { group }
    /// Returns the widgets guarded by an availability check.
    public static func buildLimitedAvailability(_ group: WidgetGroup) -> WidgetGroup { group }
}

extension WidgetDeclarations {
    /// Creates the declarations of a bundle.
    ///
    /// - Throws: ``WidgetDeclarationError``.
    public init(
        _ bundle: some WidgetBundle, intents: [any AppIntent.Type] = [],
        strings: StringCatalog = StringCatalog()
    ) throws(WidgetDeclarationError) {
        let group = WidgetGroup(bundle.body)
        try self.init(
            group.widgets, controls: group.controls, intents: intents, strings: strings)
    }
}

/// The faults in an app's widget declarations.
public struct WidgetDeclarationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The faults, each with the kind and, where applicable, the parameter's name.
    public let faults: [String]

    /// All faults in one line.
    public var description: String { faults.joined(separator: "; ") }

    init(fault: String) { faults = [fault] }

    init?(controls: [AnyControlConfiguration]) {
        let kinds = controls.map(\.kind)
        faults = Set(kinds).filter { kind in kind.isEmpty || kinds.count { $0 == kind } > 1 }
            .sorted().map { $0.isEmpty ? "a control has no kind" : "\($0): declared twice" }
        if faults.isEmpty { return nil }
    }

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
