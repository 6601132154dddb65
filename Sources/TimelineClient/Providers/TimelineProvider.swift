import Foundation

/// Where the widget stands that a provider builds for.
public struct TimelineProviderContext: Sendable, Hashable {
    /// The widget's family.
    public var family: WidgetFamily
    /// Whether this is for a gallery: the answer must be quick and may be sample data.
    public var isPreview: Bool
    /// The widget's size, in points.
    public var displaySize: CGSize

    /// A context.
    public init(family: WidgetFamily, isPreview: Bool = false, displaySize: CGSize? = nil) {
        self.family = family
        self.isPreview = isPreview
        self.displaySize = displaySize ?? family.displaySize
    }
}

/// Builds the timelines of a widget that nobody can configure.
///
/// Providers may be asked for several timelines at once, from any thread.
public protocol TimelineProvider: Sendable {
    /// What one moment of the timeline holds.
    associatedtype Entry: TimelineEntry
    /// Where the widget stands.
    typealias Context = TimelineProviderContext

    /// A generic picture without data, at once.
    func placeholder(in context: Context) -> Entry
    /// The current moment, soon; sample data will do when `context.isPreview`.
    func snapshot(in context: Context) async -> Entry
    /// The timeline from now on.
    ///
    /// The data it fetches must be at least as new as the moment of the call. An implementation
    /// that cannot fetch throws, and is asked again later, instead of returning old entries that
    /// would pass for new ones; one that cannot fail need not be marked `throws`.
    func timeline(in context: Context) async throws -> Timeline<Entry>
}

/// Builds the timelines of a widget that people configure with an app intent.
///
/// Providers may be asked for several timelines at once, from any thread.
public protocol AppIntentTimelineProvider: Sendable {
    /// What one moment of the timeline holds.
    associatedtype Entry: TimelineEntry
    /// The configuration.
    associatedtype Intent: WidgetConfigurationIntent
    /// Where the widget stands.
    typealias Context = TimelineProviderContext

    /// A generic picture without data, at once.
    func placeholder(in context: Context) -> Entry
    /// The current moment, soon; sample data will do when `context.isPreview`.
    func snapshot(for configuration: Intent, in context: Context) async -> Entry
    /// The timeline from now on, for what the person chose.
    ///
    /// The same promises as for ``TimelineProvider/timeline(in:)``.
    func timeline(for configuration: Intent, in context: Context) async throws -> Timeline<Entry>
    /// The configurations offered ready-made, from data already on the device. An empty array is
    /// a choice: the person configures the widget.
    func recommendations() -> [AppIntentRecommendation<Intent>]
}

extension AppIntentTimelineProvider {
    /// Nothing ready-made: the person configures the widget.
    public func recommendations() -> [AppIntentRecommendation<Intent>] { [] }
}

/// A configuration offered ready-made.
public struct AppIntentRecommendation<Intent: WidgetConfigurationIntent>: Sendable {
    /// The configuration.
    public let intent: Intent
    /// The name people see.
    public let description: String

    /// A recommendation.
    public init(intent: Intent, description: String) {
        self.intent = intent
        self.description = description
    }
}
