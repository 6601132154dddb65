import Foundation
import WidgetModel

/// A widget as an app declares it: a ``StaticConfiguration`` or ``AppIntentConfiguration``.
public protocol WidgetConfiguration: Sendable {
    /// The widget kind; the same string as in the catalog.
    var kind: String { get }
    /// The declaration without its types.
    var declaration: AnyWidgetConfiguration { get }
}

/// A widget that nobody can configure.
public struct StaticConfiguration<Provider: TimelineProvider>: WidgetConfiguration {
    /// The widget kind.
    public let kind: String
    private let provider: Provider

    /// Declares a widget.
    public init(kind: String, provider: Provider) {
        self.kind = kind
        self.provider = provider
    }

    /// The declaration without its types.
    public var declaration: AnyWidgetConfiguration {
        AnyWidgetConfiguration(
            kind: kind,
            placeholder: { [provider] in provider.placeholder(in: $0) },
            snapshot: { [provider] _, context in await provider.snapshot(in: context) },
            timeline: { [provider] _, context in
                AnyTimeline(try await provider.timeline(in: context))
            },
            recommendations: nil,
            coding: EntryCoding(Provider.Entry.self))
    }
}

/// A widget that people configure with an app intent.
public struct AppIntentConfiguration<
    Intent: WidgetConfigurationIntent, Provider: AppIntentTimelineProvider
>: WidgetConfiguration where Provider.Intent == Intent {
    /// The widget kind.
    public let kind: String
    private let provider: Provider

    /// Declares a widget.
    public init(kind: String, intent: Intent.Type, provider: Provider) {
        self.kind = kind
        self.provider = provider
    }

    /// The declaration without its types.
    public var declaration: AnyWidgetConfiguration {
        AnyWidgetConfiguration(
            kind: kind,
            placeholder: { [provider] in provider.placeholder(in: $0) },
            snapshot: { [provider] values, context in
                await provider.snapshot(for: try Intent(parameters: values), in: context)
            },
            timeline: { [provider] values, context in
                AnyTimeline(
                    try await provider.timeline(for: try Intent(parameters: values), in: context))
            },
            recommendations: { [provider] in
                provider.recommendations().map {
                    RecommendationSet.Item(
                        parameters: $0.intent.parameters, description: $0.description)
                }
            },
            coding: EntryCoding(Provider.Entry.self))
    }
}

/// A declared widget without its types: what the runtime calls.
public struct AnyWidgetConfiguration: Sendable {
    typealias Values = [String: ParameterValue]

    /// The widget kind.
    public let kind: String
    let placeholder: @Sendable (TimelineProviderContext) -> any TimelineEntry
    let snapshot: @Sendable (Values, TimelineProviderContext) async throws -> any TimelineEntry
    let timeline: @Sendable (Values, TimelineProviderContext) async throws -> AnyTimeline
    /// `nil` for a widget nobody can configure: it has no set, not even an empty one.
    let recommendations: (@Sendable () -> [RecommendationSet.Item])?
    let coding: EntryCoding?
}
