import WidgetModel

/// The intents that the buttons and toggles of an app's widgets perform, by the names under which
/// archives keep them (article "Adding interactivity to widgets and Live Activities", "Understand the
/// role of app intents").
public struct InteractiveIntents: Sendable {
    /// Why a call is not performed. Says nothing of the call's values.
    public enum Fault: Error, Sendable, Equatable, CustomStringConvertible {
        /// Two intents have one name, so an archived call could mean either.
        case declaredTwice(String)
        /// The app has no intent of this name, perhaps not any more.
        case unknown(String)

        /// What is wrong.
        public var description: String {
            switch self {
            case .declaredTwice(let name): "the intent \(name) is declared twice"
            case .unknown(let name): "the app declares no intent \(name)"
            }
        }
    }

    private let types: [String: any AppIntent.Type]

    /// These intents.
    ///
    /// - Throws: ``Fault/declaredTwice(_:)``.
    public init(_ types: [any AppIntent.Type]) throws(Fault) {
        var byName: [String: any AppIntent.Type] = [:]
        for type in types {
            guard byName.updateValue(type, forKey: "\(type)") == nil else {
                throw .declaredTwice("\(type)")
            }
        }
        self.types = byName
    }

    /// Makes the intent of a call, its entities found by their queries, and performs it. When this
    /// returns, the widget's timeline is to be built anew.
    ///
    /// - Throws: ``Fault/unknown(_:)``, ``IntentError`` when a value is missing or of another form,
    ///   and what a query or `perform()` throws.
    public func perform(_ call: IntentCall) async throws {
        guard let type = types[call.intent] else { throw Fault.unknown(call.intent) }
        try await type.perform(call.parameters)
    }
}

extension AppIntent {
    fileprivate static func perform(_ values: [String: ParameterValue]) async throws {
        _ = try await resolved(from: values).perform()
    }
}
