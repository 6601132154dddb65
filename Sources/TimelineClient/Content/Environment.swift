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

extension WidgetEnvironment {
    /// The environment of the view that is being drawn.
    @TaskLocal static var drawn: WidgetEnvironment?

    /// Draws a view for this environment, without redacted content and without a background that
    /// the system removes.
    public func draw(_ view: () -> some View) -> WidgetNode {
        Self.$drawn.withValue(self) {
            let node = view().drawnAsOne.redacted(for: redactionReasons)
            guard !showsWidgetContainerBackground else { return node }
            return node.withoutContainerBackgrounds() ?? WidgetNode(.stack(.vertical, []))
        }
    }
}
