import Foundation

/// When a widget is worth a place in a Smart Stack (Apple, Increasing the visibility of widgets in
/// Smart Stacks).
///
/// Times are the contexts that need nothing but a clock. WidgetKit's others, such as places, sleep and
/// headphones, are for devices that notice them.
public struct RelevantContext: Sendable, Hashable {
    /// How long before and after a single date it is relevant, seconds. Apple names no length; this is
    /// the library's choice.
    public static let secondsAroundDate: TimeInterval = 900

    /// When it begins to be relevant.
    public let start: Date
    /// When it is relevant no more.
    public let end: Date

    /// Around a date.
    public static func date(_ date: Date) -> RelevantContext {
        .date(from: date - secondsAroundDate, to: date + secondsAroundDate)
    }

    /// From one date to another; never, where the other is not later, or one of them is not finite.
    public static func date(from start: Date, to end: Date) -> RelevantContext {
        let isFinite =
            start.timeIntervalSinceReferenceDate.isFinite
            && end.timeIntervalSinceReferenceDate.isFinite
        return isFinite
            ? RelevantContext(start: start, end: max(start, end))
            : RelevantContext(start: .distantPast, end: .distantPast)
    }

    /// Whether it is relevant at a date.
    public func contains(_ date: Date) -> Bool { start <= date && date < end }
}

/// A configuration of a widget, and when it is relevant.
public struct WidgetRelevanceAttribute<Configuration: Sendable>: Sendable {
    /// What a person may have chosen; nothing for a widget that nobody can configure.
    public let configuration: Configuration
    /// When it is relevant.
    public let context: RelevantContext

    /// A configuration with its context.
    public init(configuration: Configuration, context: RelevantContext) {
        self.configuration = configuration
        self.context = context
    }
}

extension WidgetRelevanceAttribute where Configuration == Void {
    /// When a widget is relevant that nobody can configure.
    public init(context: RelevantContext) { self.init(configuration: (), context: context) }
}

/// When which configurations of a widget are relevant.
public struct WidgetRelevance<Configuration: Sendable>: Sendable {
    /// Each with its context; one configuration may stand here several times.
    public let attributes: [WidgetRelevanceAttribute<Configuration>]

    /// What is relevant, and when; never, where there are no attributes.
    public init(_ attributes: [WidgetRelevanceAttribute<Configuration>]) {
        self.attributes = attributes
    }
}
