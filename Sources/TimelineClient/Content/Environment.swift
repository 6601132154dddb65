/// What a view sees of where it is shown: `@Environment(\.widgetFamily) var family`.
///
/// It has a value while the view is drawn, and only then.
@propertyWrapper
public struct Environment<Value>: Sendable {
    private let keyPath: any KeyPath<WidgetEnvironment, Value> & Sendable

    /// The value of a property of the environment.
    public init(_ keyPath: any KeyPath<WidgetEnvironment, Value> & Sendable) {
        self.keyPath = keyPath
    }

    /// The value.
    ///
    /// To read it while no widget is drawn is a mistake in the program.
    public var wrappedValue: Value {
        guard let environment = WidgetEnvironment.drawn else {
            preconditionFailure("the environment is there only while a widget is drawn")
        }
        return environment[keyPath: keyPath]
    }
}

extension WidgetEnvironment {
    /// The environment that a view is drawn for now.
    @TaskLocal static var drawn: WidgetEnvironment?

    /// Draws a view for this environment: with what must not be recognised, and a background that
    /// the system takes away, left out.
    public func draw(_ view: () -> some View) -> WidgetNode {
        Self.$drawn.withValue(self) {
            let node = view().drawnAsOne.redacted(for: redactionReasons)
            guard !showsWidgetContainerBackground else { return node }
            return node.withoutContainerBackgrounds() ?? WidgetNode(.stack(.vertical, []))
        }
    }
}
