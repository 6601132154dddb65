import Synchronization

/// Builds the timelines of a widget without configuration, and passes them to completion handlers;
/// ``AsyncTimelineProvider`` returns them instead (article "Creating a widget extension", "Provide
/// timeline entries").
///
/// Providers may be asked for several timelines concurrently, from any thread. If a handler is
/// called more than once, the first call counts. A handler that is released without a call is a
/// failure, and the provider is asked again later.
public protocol TimelineProvider: Sendable {
    /// The type of the timeline's entries.
    associatedtype Entry: TimelineEntry
    /// The context in which the widget is built.
    typealias Context = TimelineProviderContext

    /// Returns generic content without data, immediately (the same article, "Display a placeholder
    /// widget").
    func placeholder(in context: Context) -> Entry
    /// Provides the current entry quickly; sample data is allowed if `context.isPreview` (the same
    /// article, "Generate a preview for the widget gallery").
    func getSnapshot(in context: Context, completion: @escaping @Sendable (Entry) -> Void)
    /// Provides the timeline from now on.
    ///
    /// The data it fetches must be at least as new as the call.
    func getTimeline(
        in context: Context, completion: @escaping @Sendable (Timeline<Entry>) -> Void)
    /// Returns the times at which the widget is relevant, when a watch's Smart Stack shows it
    /// before others. Called when the client starts, and after
    /// ``WidgetCenter/invalidateRelevance(ofKind:)``; not on iPhone and iPad, which use
    /// ``TimelineEntry/relevance``.
    func relevance() async -> WidgetRelevance<Void>
}

extension TimelineProvider {
    /// Returns no relevance.
    public func relevance() async -> WidgetRelevance<Void> { WidgetRelevance([]) }
}

/// Builds the timelines of a widget without configuration with `async` functions.
///
/// Providers may be asked for several timelines concurrently, from any thread.
public protocol AsyncTimelineProvider: TimelineProvider {
    /// Returns the current entry quickly; sample data is allowed if `context.isPreview`.
    func snapshot(in context: Context) async -> Entry
    /// Returns the timeline from now on.
    ///
    /// The data it fetches must be at least as new as the call. An implementation that cannot fetch
    /// data must throw, and is asked again later; it must not return old entries, which would be
    /// taken for current ones. One that cannot fail need not be marked `throws`.
    ///
    /// - Throws: The reason why there is no timeline. The shown content stays, and stays stale.
    func timeline(in context: Context) async throws -> Timeline<Entry>
}

extension AsyncTimelineProvider {
    /// Calls `completion` with the result of ``snapshot(in:)``.
    public func getSnapshot(
        in context: Context, completion: @escaping @Sendable (Entry) -> Void
    ) {
        Task { completion(await snapshot(in: context)) }
    }

    /// Calls `completion` with the result of ``timeline(in:)``; releases the handler if that
    /// throws.
    public func getTimeline(
        in context: Context, completion: @escaping @Sendable (Timeline<Entry>) -> Void
    ) {
        Task { if let timeline = try? await timeline(in: context) { completion(timeline) } }
    }
}

extension TimelineProvider {
    package func awaitedSnapshot(in context: Context) async throws -> Entry {
        if let provider = self as? any AsyncTimelineProvider,
            let entry = await provider.snapshot(in: context) as? Entry
        {
            return entry
        }
        return try await Self.awaited { getSnapshot(in: context, completion: $0) }
    }

    package func awaitedTimeline(in context: Context) async throws -> Timeline<Entry> {
        if let provider = self as? any AsyncTimelineProvider,
            let timeline = try await provider.anyTimeline(in: context) as? Timeline<Entry>
        {
            return timeline
        }
        return try await Self.awaited { getTimeline(in: context, completion: $0) }
    }

    /// Returns the value of the first call of a completion handler.
    private static func awaited<Value: Sendable>(
        _ call: (@escaping @Sendable (Value) -> Void) -> Void
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let completion = Completion(continuation)
            call { completion.call($0) }
        }
    }
}

/// A completion handler that tolerates a second call, and reports a release without a call.
private final class Completion<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value, any Error>?>

    init(_ continuation: CheckedContinuation<Value, any Error>) {
        self.continuation = Mutex(continuation)
    }

    deinit {
        take()?.resume(
            throwing: WidgetFailure(
                description: "the provider dropped its completion handler without calling it"))
    }

    func call(_ value: Value) { take()?.resume(returning: value) }

    private func take() -> CheckedContinuation<Value, any Error>? {
        continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
    }
}

extension AsyncTimelineProvider {
    fileprivate func anyTimeline(in context: Context) async throws -> any Sendable {
        try await timeline(in: context)
    }
}

/// Builds the timelines of a widget that people configure with an app intent (article "Making a
/// configurable widget", "Handle customized values in your widget").
///
/// Providers may be asked for several timelines concurrently, from any thread.
public protocol AppIntentTimelineProvider: Sendable {
    /// The type of the timeline's entries.
    associatedtype Entry: TimelineEntry
    /// The type of the configuration.
    associatedtype Intent: WidgetConfigurationIntent
    /// The context in which the widget is built.
    typealias Context = TimelineProviderContext

    /// Returns generic content without data, immediately.
    func placeholder(in context: Context) -> Entry
    /// Returns the current entry quickly; sample data is allowed if `context.isPreview`.
    func snapshot(for configuration: Intent, in context: Context) async -> Entry
    /// Returns the timeline from now on for a configuration.
    ///
    /// The requirements of ``AsyncTimelineProvider/timeline(in:)`` apply.
    ///
    /// - Throws: The reason why there is no timeline. The shown content stays, and stays stale.
    func timeline(for configuration: Intent, in context: Context) async throws -> Timeline<Entry>
    /// Returns the timeline of a widget whose required parameter is an entity that was deleted,
    /// such as one entry that says so. By default, the placeholder until the next change.
    ///
    /// - Parameter parameter: The name of the parameter.
    /// - Throws: The reason why there is no timeline.
    func timeline(withoutEntityOf parameter: String, in context: Context) async throws
        -> Timeline<Entry>
    /// Returns the ready-made configurations to offer. An empty array means that people configure
    /// the widget themselves.
    ///
    /// Also called when a notification reports the set as stale, so the underlying data must be at
    /// least as new as the call. An implementation that cannot fetch data must throw; it is called
    /// again later, and the set stays unchanged. One whose data is all on the device need be
    /// neither `async` nor `throws` (article "Making a configurable widget", "Offer configurable
    /// widgets and complications on Apple Watch").
    ///
    /// - Throws: The reason why they cannot be determined now.
    func recommendations() async throws -> [AppIntentRecommendation<Intent>]
    /// Returns the relevant configurations with their times; see ``TimelineProvider/relevance()``.
    func relevance() async -> WidgetRelevance<Intent>
}

extension AppIntentTimelineProvider {
    /// Returns the placeholder, until the next change.
    public func timeline(withoutEntityOf parameter: String, in context: Context) -> Timeline<Entry>
    {
        Timeline(entries: [placeholder(in: context)], policy: .never)
    }

    /// Returns no ready-made configurations, so people configure the widget themselves.
    public func recommendations() -> [AppIntentRecommendation<Intent>] { [] }

    /// Returns no relevance.
    public func relevance() async -> WidgetRelevance<Intent> { WidgetRelevance([]) }
}

/// A ready-made configuration to offer.
public struct AppIntentRecommendation<Intent: WidgetConfigurationIntent>: Sendable {
    /// The configuration.
    public let intent: Intent
    /// The display name of the configuration.
    public let description: String

    /// Creates a recommendation.
    public init(intent: Intent, description: LocalizedStringResource) {
        self.intent = intent
        self.description = description.text
    }

    /// Creates a recommendation.
    @_disfavoredOverload
    public init(intent: Intent, description: some StringProtocol) {
        self.intent = intent
        self.description = String(description)
    }
}

extension AppIntentRecommendation {
    /// Creates a recommendation.
    public init(intent: Intent, description: Text) {
        self.init(intent: intent, description: description.plain)
    }
}
