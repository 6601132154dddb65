import Synchronization
import WidgetModel

/// The intents of the buttons and toggles that were drawn, by the names in their archived calls: a
/// program can perform the intent of a control that it has drawn without declaring it.
package final class DrawnIntents: Sendable {
    /// The receiver of the intents that are being drawn.
    @TaskLocal package static var current: DrawnIntents?

    private let types: Mutex<[String: any AppIntent.Type]>
    private let firstFault = Mutex<String?>(nil)

    package init(_ types: [String: any AppIntent.Type] = [:]) { self.types = Mutex(types) }

    /// The first reason why what was drawn cannot be shown or work; `nil` when there is none.
    package var fault: String? { firstFault.withLock { $0 } }

    /// Returns the intent with this name; `nil` when none was drawn.
    package subscript(name name: String) -> (any AppIntent.Type)? { types.withLock { $0[name] } }

    /// Adds the intents of another drawing. It has a fault if it gives a known name to another one.
    package func add(_ other: DrawnIntents) {
        for (name, type) in other.types.withLock({ $0 }) { add(type, named: name, drawnBy: other) }
    }

    /// Adds the intent of a control. No person can choose its parameters there, so each must have a
    /// value (article "Adding interactivity to widgets and Live Activities", "Add an app intent
    /// that performs the action").
    func add<Intent: AppIntent>(_ intent: Intent, named name: String) {
        add(Intent.self, named: name, drawnBy: self)
        for (parameter, value) in intent.intentParameters
        where !value.isOptional && value.parameterValue == .unset {
            report("a control performs \(name), whose parameter \(parameter) has no value")
        }
    }

    private func add(
        _ type: any AppIntent.Type, named name: String, drawnBy drawing: DrawnIntents
    ) {
        let known = types.withLock { types in
            types[name] = types[name] ?? type
            return types[name]
        }
        if let known, ObjectIdentifier(known) != ObjectIdentifier(type) {
            drawing.report("two intents are named \(name), and an archive cannot tell them apart")
        }
    }

    func report(_ fault: String) { firstFault.withLock { $0 = $0 ?? fault } }
}

extension IntentCall {
    package init<Intent: AppIntent>(_ intent: Intent) {
        self.init(intent: "\(Intent.self)", parameters: intent.parameters)
        DrawnIntents.current?.add(intent, named: self.intent)
    }
}
