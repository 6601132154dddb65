// swift-format-ignore-file
// A stub for Deploy/check-client: see AppleFoundation.swift.
@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder @MainActor @preconcurrency var body: Self.Body { get }
}

extension Never: View {
    public typealias Body = Never
    public var body: Never { fatalError() }
}

@resultBuilder public enum ViewBuilder {
    public static func buildBlock<Content>(_ content: Content) -> Content where Content: View {
        content
    }
}

public struct Text: View {
    nonisolated public init<S>(_ content: S) where S: StringProtocol {}
    public typealias Body = Never
    public var body: Never { fatalError() }
}

extension View {
    nonisolated public func task<T>(
        id value: T, priority: TaskPriority = .userInitiated,
        @_inheritActorContext _ action: @escaping @Sendable () async -> Void
    ) -> some View where T: Equatable { self }
}

public enum ScenePhase: Comparable, Hashable, Sendable { case background, inactive, active }

public struct EnvironmentValues: Sendable {
    public init() {}
    public var scenePhase: ScenePhase { .active }
}

@propertyWrapper public struct Environment<Value> {
    private let keyPath: KeyPath<EnvironmentValues, Value>
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { self.keyPath = keyPath }
    public var wrappedValue: Value { EnvironmentValues()[keyPath: keyPath] }
}
