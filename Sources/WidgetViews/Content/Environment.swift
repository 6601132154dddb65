/// Reads a property of the context in which a view is shown: `@Environment(\.widgetFamily) var
/// family`.
///
/// It has a value only while the view is drawn.
@propertyWrapper
public struct Environment<Value>: Sendable {
    private let keyPath: any KeyPath<WidgetEnvironment, Value> & Sendable

    /// Creates an accessor for a property of the environment.
    public init(_ keyPath: any KeyPath<WidgetEnvironment, Value> & Sendable) {
        self.keyPath = keyPath
    }

    /// The value of the property.
    ///
    /// Reading it while no widget is drawn is a programming error.
    public var wrappedValue: Value {
        guard let environment = WidgetEnvironment.drawn else {
            preconditionFailure("the environment is there only while a widget is drawn")
        }
        return environment[keyPath: keyPath]
    }
}

/// A value of an app in the environment of its views: a key, and a property of
/// ``EnvironmentValues`` that reads and writes it.
public protocol EnvironmentKey {
    /// The type of the value.
    associatedtype Value: Sendable

    /// The value where no view sets another.
    static var defaultValue: Value { get }
}

/// The environment, as apps extend it.
public typealias EnvironmentValues = WidgetEnvironment

extension WidgetEnvironment {
    /// The value of an app's key.
    public subscript<Key: EnvironmentKey>(key: Key.Type) -> Key.Value {
        get { own.value[ObjectIdentifier(key)].flatMap { $0 as? Key.Value } ?? Key.defaultValue }
        set { own.value[ObjectIdentifier(key)] = newValue }
    }

    /// The margins that the system keeps around the content: those of system families, in points.
    /// The sizes are this library's choice. Accessories, StandBy and Live Activities have none.
    public var widgetContentMargins: EdgeInsets {
        guard !WidgetContextTable.isAccessory(widgetFamily), location != .standBy,
            activityPresentation == nil
        else { return EdgeInsets() }
        return EdgeInsets(top: 16, leading: 16, bottom: 16, trailing: 16)
    }

    /// The environment of the view that is being drawn.
    @TaskLocal static var drawn: WidgetEnvironment?

    fileprivate func whileDrawn<Result>(_ body: () -> Result) -> Result {
        Self.$drawn.withValue(self) { StringCatalog.$locale.withValue(locale) { body() } }
    }

    /// Draws a view for this environment, without redacted content and without a background that
    /// the system removes.
    public func draw(_ view: () -> some View) -> WidgetNode {
        let node = whileDrawn { view().drawnAsOne.redacted(for: redactionReasons) }
        if node.depth > WidgetNode.depthMax {
            DrawnIntents.current?.report(
                "more than \(WidgetNode.depthMax) views are inside each other, and an archive "
                    + "cannot hold them")
        }
        guard !showsWidgetContainerBackground else { return node }
        return node.withoutContainerBackgrounds() ?? WidgetNode(.stack(.vertical, []))
    }
}

extension View {
    /// Sets a value of the environment for the view and everything in it.
    public func environment<Value>(
        _ keyPath: WritableKeyPath<EnvironmentValues, Value>, _ value: Value
    ) -> some View {
        inEnvironment { $0[keyPath: keyPath] = value }
    }

    /// Changes the view by a modifier.
    public func modifier(_ modifier: some ViewModifier) -> some View {
        DrawnView { modifier.body(content: DrawnView { self.drawn }).drawn }
    }

    /// Draws the view in a changed environment.
    func inEnvironment(_ change: @escaping (inout WidgetEnvironment) -> Void) -> DrawnView {
        DrawnView {
            guard var environment = WidgetEnvironment.drawn else { return self.drawn }
            change(&environment)
            return environment.whileDrawn { self.drawn }
        }
    }
}

/// A change to views that an app gives a name.
public protocol ViewModifier {
    /// The type of the changed view.
    associatedtype Body: View
    /// The view to change.
    typealias Content = DrawnView

    /// Returns the changed view.
    @ViewBuilder func body(content: Content) -> Body
}
