import Foundation

/// What a relevance widget shows in one of its configurations.
public protocol RelevanceEntry: Sendable {}

/// Where a relevance widget stands.
public struct RelevanceEntriesProviderContext: Sendable, Hashable {
    /// The widget's size, in points.
    public var displaySize: CGSize
    /// Whether this is for a gallery: the answer must be quick and may be sample data.
    public var isPreview: Bool

    /// A context.
    public init(displaySize: CGSize, isPreview: Bool = false) {
        self.displaySize = displaySize
        self.isPreview = isPreview
    }
}

/// Provides a widget that nobody places: a watch shows it in its Smart Stack while it is relevant,
/// several times where several configurations are (article "Creating a widget extension", "Add a
/// widget target to your app").
///
/// It may be asked several times at once, from any thread. What it fetches must be at least as new as
/// the moment of the call; one that cannot fetch throws and is asked again later, while what is shown
/// stays.
public protocol RelevanceEntriesProvider: Sendable {
    /// What is shown of a configuration.
    associatedtype Entry: RelevanceEntry
    /// What the provider chooses for itself, as nobody else does.
    associatedtype Configuration: WidgetConfigurationIntent
    /// Where the widget stands.
    typealias Context = RelevanceEntriesProviderContext

    /// Which configurations are relevant, and when. Asked when the client starts, when the gateway or
    /// ``WidgetCenter/invalidateRelevance(ofKind:)`` says that it is stale, and when the last context is
    /// over; no more often than the widget's budget allows.
    ///
    /// - Throws: Why it cannot be said now. What is shown stays, and is asked for again later.
    func relevance() async throws -> WidgetRelevance<Configuration>
    /// What is shown of a configuration while it is relevant.
    ///
    /// - Throws: Why there is nothing: as for ``relevance()``, for all of them.
    func entry(configuration: Configuration, context: Context) async throws -> Entry
    /// A generic picture without data, at once.
    func placeholder(context: Context) -> Entry
}
