import Foundation

/// The content of a relevance widget in one of its configurations.
public protocol RelevanceEntry: Sendable {}

/// The context in which a provider builds a relevance widget.
public struct RelevanceEntriesProviderContext: Sendable, Hashable {
    /// The widget's size, in points.
    public var displaySize: CGSize
    /// Whether the entry is for a gallery: the provider must answer quickly and may return sample
    /// data.
    public var isPreview: Bool

    /// Creates a context.
    public init(displaySize: CGSize, isPreview: Bool = false) {
        self.displaySize = displaySize
        self.isPreview = isPreview
    }
}

/// Provides a widget that is not placed by people: a watch shows it in its Smart Stack while it is
/// relevant, once for each relevant configuration (article "Creating a widget extension", "Add a
/// widget target to your app").
///
/// It may be called several times concurrently, from any thread. The data it fetches must be at
/// least as new as the call. If it cannot fetch data it must throw; it is called again later, and
/// the shown content stays meanwhile.
public protocol RelevanceEntriesProvider: Sendable {
    /// The content for a configuration.
    associatedtype Entry: RelevanceEntry
    /// The configuration, which the provider chooses itself.
    associatedtype Configuration: WidgetConfigurationIntent
    /// The context in which the widget is built.
    typealias Context = RelevanceEntriesProviderContext

    /// Returns the relevant configurations with their times. Called when the client starts, when
    /// the gateway or ``WidgetCenter/invalidateRelevance(ofKind:)`` reports stale relevance, and
    /// when the last context has ended; limited by the widget's budget.
    ///
    /// - Throws: The reason why it cannot be determined now. The shown content stays, and this is
    ///   called again later.
    func relevance() async throws -> WidgetRelevance<Configuration>
    /// Returns the content for a configuration while it is relevant.
    ///
    /// - Throws: The reason why there is none. As with ``relevance()``, this applies to all
    ///   configurations.
    func entry(configuration: Configuration, context: Context) async throws -> Entry
    /// Returns generic content without data, immediately.
    func placeholder(context: Context) -> Entry
}
