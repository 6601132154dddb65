import Foundation

/// A time at which a widget deserves a place in a Smart Stack (Apple, Increasing the visibility of
/// widgets in Smart Stacks).
///
/// Only contexts that depend on the time are supported. WidgetKit's others, such as places, sleep
/// and headphones, require sensors of the device.
public struct RelevantContext: Sendable, Hashable {
    /// The seconds before and after a single date at which a widget is relevant. Apple states no
    /// duration; this is the library's choice.
    public static let secondsAroundDate: TimeInterval = 900

    /// The start of the relevance.
    public let start: Date
    /// The end of the relevance, exclusive.
    public let end: Date

    /// Returns a context around a date.
    public static func date(_ date: Date) -> RelevantContext {
        .date(from: date - secondsAroundDate, to: date + secondsAroundDate)
    }

    /// Returns a context from one date to another. It is empty if `end` is not later than `start`,
    /// or a date is not finite.
    public static func date(from start: Date, to end: Date) -> RelevantContext {
        let isFinite =
            start.timeIntervalSinceReferenceDate.isFinite
            && end.timeIntervalSinceReferenceDate.isFinite
        return isFinite
            ? RelevantContext(start: start, end: max(start, end))
            : RelevantContext(start: .distantPast, end: .distantPast)
    }

    /// Returns whether the widget is relevant at a date.
    public func contains(_ date: Date) -> Bool { start <= date && date < end }
}

/// A configuration of a widget with the time at which it is relevant.
public struct WidgetRelevanceAttribute<Configuration: Sendable>: Sendable {
    /// A configuration that a person may have chosen; empty for a widget without configuration.
    public let configuration: Configuration
    /// The time at which it is relevant.
    public let context: RelevantContext

    /// Creates an attribute from a configuration and its context.
    public init(configuration: Configuration, context: RelevantContext) {
        self.configuration = configuration
        self.context = context
    }
}

extension WidgetRelevanceAttribute where Configuration == Void {
    /// Creates the attribute of a widget without configuration.
    public init(context: RelevantContext) { self.init(configuration: (), context: context) }
}

/// The relevant configurations of a widget with their times.
public struct WidgetRelevance<Configuration: Sendable>: Sendable {
    /// The configurations with their contexts; a configuration may occur several times.
    public let attributes: [WidgetRelevanceAttribute<Configuration>]

    /// Creates a relevance from attributes. Without attributes the widget is never relevant.
    public init(_ attributes: [WidgetRelevanceAttribute<Configuration>]) {
        self.attributes = attributes
    }
}
