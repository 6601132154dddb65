import Foundation
import Synchronization

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

/// Builds the timelines of a widget that nobody can configure, and hands them to completion
/// handlers; ``AsyncTimelineProvider`` returns them (article "Creating a widget extension", "Provide
/// timeline entries").
///
/// Providers may be asked for several timelines at once, from any thread. Of a handler that is
/// called more than once the first call counts; one that is dropped uncalled is a failure, and the
/// provider is asked again later.
public protocol TimelineProvider: Sendable {
    /// What one moment of the timeline holds.
    associatedtype Entry: TimelineEntry
    /// Where the widget stands.
    typealias Context = TimelineProviderContext

    /// A generic picture without data, at once (the same article, "Display a placeholder widget").
    func placeholder(in context: Context) -> Entry
    /// The current moment, soon; sample data will do when `context.isPreview` (the same article,
    /// "Generate a preview for the widget gallery").
    func getSnapshot(in context: Context, completion: @escaping @Sendable (Entry) -> Void)
    /// The timeline from now on.
    ///
    /// The data it fetches must be at least as new as the moment of the call.
    func getTimeline(
        in context: Context, completion: @escaping @Sendable (Timeline<Entry>) -> Void)
    /// When the widget is relevant: then a watch's Smart Stack shows it before others. Asked when the
    /// client starts, and again after ``WidgetCenter/invalidateRelevance(ofKind:)``; by no iPhone or
    /// iPad, which go by ``TimelineEntry/relevance``.
    func relevance() async -> WidgetRelevance<Void>
}

extension TimelineProvider {
    /// Never more than others.
    public func relevance() async -> WidgetRelevance<Void> { WidgetRelevance([]) }
}

/// Builds the timelines of a widget that nobody can configure.
///
/// Providers may be asked for several timelines at once, from any thread.
public protocol AsyncTimelineProvider: TimelineProvider {
    /// The current moment, soon; sample data will do when `context.isPreview`.
    func snapshot(in context: Context) async -> Entry
    /// The timeline from now on.
    ///
    /// The data it fetches must be at least as new as the moment of the call. An implementation
    /// that cannot fetch throws, and is asked again later, instead of returning old entries that
    /// would pass for new ones; one that cannot fail need not be marked `throws`.
    ///
    /// - Throws: Why there is none. What is shown stays, and stays stale.
    func timeline(in context: Context) async throws -> Timeline<Entry>
}

extension AsyncTimelineProvider {
    /// Hands on what ``snapshot(in:)`` returns.
    public func getSnapshot(
        in context: Context, completion: @escaping @Sendable (Entry) -> Void
    ) {
        Task { completion(await snapshot(in: context)) }
    }

    /// Hands on what ``timeline(in:)`` returns; drops the handler when it throws.
    public func getTimeline(
        in context: Context, completion: @escaping @Sendable (Timeline<Entry>) -> Void
    ) {
        Task { if let timeline = try? await timeline(in: context) { completion(timeline) } }
    }
}

extension TimelineProvider {
    func awaitedSnapshot(in context: Context) async throws -> Entry {
        if let provider = self as? any AsyncTimelineProvider,
            let entry = await provider.snapshot(in: context) as? Entry
        {
            return entry
        }
        return try await Self.awaited { getSnapshot(in: context, completion: $0) }
    }

    func awaitedTimeline(in context: Context) async throws -> Timeline<Entry> {
        if let provider = self as? any AsyncTimelineProvider,
            let timeline = try await provider.anyTimeline(in: context) as? Timeline<Entry>
        {
            return timeline
        }
        return try await Self.awaited { getTimeline(in: context, completion: $0) }
    }

    /// What a completion handler is called with first.
    private static func awaited<Value: Sendable>(
        _ call: (@escaping @Sendable (Value) -> Void) -> Void
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let completion = Completion(continuation)
            call { completion.call($0) }
        }
    }
}

/// A completion handler that may be called twice, and tells when it is dropped uncalled.
private final class Completion<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value, any Error>?>

    init(_ continuation: CheckedContinuation<Value, any Error>) {
        self.continuation = Mutex(continuation)
    }

    deinit {
        take()?.resume(
            throwing: WidgetRuntime.Failure(
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
    /// The same promises as for ``AsyncTimelineProvider/timeline(in:)``.
    ///
    /// - Throws: Why there is none. What is shown stays, and stays stale.
    func timeline(for configuration: Intent, in context: Context) async throws -> Timeline<Entry>
    /// The configurations offered ready-made. An empty array is a choice: the person configures the
    /// widget.
    ///
    /// It is called when the set is told stale too: what it is made of must be at least as new as the
    /// moment of the call. An implementation that cannot fetch throws, and is asked again later, while
    /// the set stays as it is; one that has all on the device need be neither `async` nor `throws`
    /// (article "Making a configurable widget", "Offer configurable widgets and complications on Apple Watch").
    ///
    /// - Throws: Why it cannot be said now.
    func recommendations() async throws -> [AppIntentRecommendation<Intent>]
    /// When which configurations of the widget are relevant; see ``TimelineProvider/relevance()``.
    func relevance() async -> WidgetRelevance<Intent>
}

extension AppIntentTimelineProvider {
    /// Nothing ready-made: the person configures the widget.
    public func recommendations() -> [AppIntentRecommendation<Intent>] { [] }

    /// Never more than others.
    public func relevance() async -> WidgetRelevance<Intent> { WidgetRelevance([]) }
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
