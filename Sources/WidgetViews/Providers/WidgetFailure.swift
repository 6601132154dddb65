/// The reason why a provider or an intent gives no answer.
public struct WidgetFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// Describes the failure for the gateway's operator, without values that a person chose.
    public let description: String

    package init(description: String) { self.description = description }
}
