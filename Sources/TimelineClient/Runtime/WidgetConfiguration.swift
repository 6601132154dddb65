import Foundation
import WidgetModel

/// A widget as an app declares it: a ``StaticConfiguration``, ``AppIntentConfiguration`` or
/// ``RelevanceConfiguration``, and what its modifiers say of it.
public protocol WidgetConfiguration: Sendable {
    /// The declaration without its types.
    var declaration: AnyWidgetConfiguration { get }
}

/// A widget that nobody can configure (article "Creating a widget extension", "Add configuration
/// details").
public struct StaticConfiguration<Provider: TimelineProvider>: WidgetConfiguration {
    private let kind: String
    private let provider: Provider
    private let draw: AnyWidgetConfiguration.Draw

    /// Declares a widget.
    ///
    /// - Parameters:
    ///   - kind: Identifies it; the same string as in the catalog.
    ///   - content: What it shows of an entry, in each context it can be in.
    public init(
        kind: String, provider: Provider,
        @ViewBuilder content: @escaping @Sendable (Provider.Entry) -> some View
    ) {
        self.kind = kind
        self.provider = provider
        draw = AnyWidgetConfiguration.drawing(content)
    }

    /// Declares a widget whose entries are shown by others, who are told of them by the client.
    ///
    /// - Parameter kind: Identifies it; the same string as in the catalog.
    public init(kind: String, provider: Provider) {
        self.init(kind: kind, provider: provider) { _ in EmptyView() }
    }

    /// The declaration without its types.
    public var declaration: AnyWidgetConfiguration {
        var declaration = AnyWidgetConfiguration(
            kind: kind,
            placeholder: { [provider] in provider.placeholder(in: $0) },
            snapshot: { [provider] _, context in
                try await provider.awaitedSnapshot(in: context)
            },
            timeline: { [provider] _, context in
                AnyTimeline(try await provider.awaitedTimeline(in: context))
            },
            draw: draw)
        declaration.relevance = { [provider] in
            await provider.relevance().attributes.map {
                RelevantConfiguration(configuration: [:], context: $0.context)
            }
        }
        return declaration
    }
}

/// A widget that people configure with an app intent (article "Making a configurable widget", "Handle
/// customized values in your widget").
public struct AppIntentConfiguration<
    Intent: WidgetConfigurationIntent, Provider: AppIntentTimelineProvider
>: WidgetConfiguration where Provider.Intent == Intent {
    private let kind: String
    private let provider: Provider
    private let draw: AnyWidgetConfiguration.Draw

    /// Declares a widget.
    ///
    /// - Parameters:
    ///   - kind: Identifies it; the same string as in the catalog.
    ///   - content: What it shows of an entry, in each context it can be in.
    public init(
        kind: String, intent: Intent.Type, provider: Provider,
        @ViewBuilder content: @escaping @Sendable (Provider.Entry) -> some View
    ) {
        self.kind = kind
        self.provider = provider
        draw = AnyWidgetConfiguration.drawing(content)
    }

    /// Declares a widget whose entries are shown by others, who are told of them by the client.
    ///
    /// - Parameter kind: Identifies it; the same string as in the catalog.
    public init(kind: String, intent: Intent.Type, provider: Provider) {
        self.init(kind: kind, intent: intent, provider: provider) { _ in EmptyView() }
    }

    /// The declaration without its types.
    public var declaration: AnyWidgetConfiguration {
        var declaration = AnyWidgetConfiguration(
            kind: kind,
            placeholder: { [provider] in provider.placeholder(in: $0) },
            snapshot: { [provider] values, context in
                await provider.snapshot(
                    for: try await Intent.resolved(from: values), in: context)
            },
            timeline: { [provider] values, context in
                AnyTimeline(
                    try await provider.timeline(
                        for: try await Intent.resolved(from: values), in: context))
            },
            draw: draw)
        declaration.recommendations = { [provider] in
            try await provider.recommendations().map {
                RecommendationSet.Item(
                    parameters: $0.intent.parameters, description: $0.description)
            }
        }
        declaration.relevance = { [provider] in
            await provider.relevance().attributes.map {
                RelevantConfiguration(
                    configuration: $0.configuration.parameters, context: $0.context)
            }
        }
        declaration.parameters = Intent.parameterDeclarations
        declaration.intent = "\(Intent.self)"
        return declaration
    }
}

/// A declared widget without its types: what the runtime calls, and what a gallery shows.
public struct AnyWidgetConfiguration: WidgetConfiguration {
    typealias Values = [String: ParameterValue]
    typealias Draw = @Sendable (any TimelineEntry, WidgetEnvironment) -> WidgetNode?

    /// The widget kind.
    public let kind: String
    /// How it is called in the gallery; the kind, unless the app says otherwise.
    public internal(set) var displayName: LocalizedStringResource
    /// What it shows, for the gallery.
    public internal(set) var description: LocalizedStringResource?
    /// The contexts it fits.
    public internal(set) var traits = WidgetTraits()
    /// What people can choose about it, in the order in which they are asked; none for a widget
    /// that nobody can configure.
    public internal(set) var parameters: [IntentParameterDeclaration] = []

    let placeholder: @Sendable (TimelineProviderContext) -> any TimelineEntry
    let snapshot: @Sendable (Values, TimelineProviderContext) async throws -> any TimelineEntry
    let timeline: @Sendable (Values, TimelineProviderContext) async throws -> AnyTimeline
    /// `nil` for an entry of another widget's type.
    let draw: Draw
    /// Told how it is pushed to; `nil` for a widget that is not.
    var pushHandler: (any WidgetPushHandler.Type)?
    /// `nil` for a widget nobody can configure: it has no set, not even an empty one.
    var recommendations: (@Sendable () async throws -> [RecommendationSet.Item])?
    /// When which configurations are relevant; `nil` for a relevance widget, whose entries say it.
    var relevance: (@Sendable () async -> [RelevantConfiguration])?
    /// The kind whose widgets it stands in for.
    var associatedKind: String?
    /// The name of its intent.
    var intent: String?

    init(
        kind: String,
        placeholder: @escaping @Sendable (TimelineProviderContext) -> any TimelineEntry,
        snapshot:
            @escaping @Sendable (Values, TimelineProviderContext) async throws
            -> any TimelineEntry,
        timeline: @escaping @Sendable (Values, TimelineProviderContext) async throws -> AnyTimeline,
        draw: @escaping Draw
    ) {
        self.kind = kind
        displayName = LocalizedStringResource(kind)
        self.placeholder = placeholder
        self.snapshot = snapshot
        self.timeline = timeline
        self.draw = draw
    }

    /// Itself.
    public var declaration: AnyWidgetConfiguration { self }

    static func drawing<Entry: TimelineEntry>(
        _ content: @escaping @Sendable (Entry) -> some View
    ) -> Draw {
        { entry, environment in
            (entry as? Entry).map { entry in environment.draw { content(entry) } }
        }
    }
}

extension WidgetConfiguration {
    /// Names the widget in the gallery.
    public func configurationDisplayName(
        _ name: LocalizedStringResource
    ) -> some WidgetConfiguration {
        with { $0.displayName = name }
    }

    /// Says in the gallery what the widget shows.
    public func description(_ text: LocalizedStringResource) -> some WidgetConfiguration {
        with { $0.description = text }
    }

    /// Names the families the widget can be placed in.
    public func supportedFamilies(_ families: [WidgetFamily]) -> some WidgetConfiguration {
        with { $0.traits.supportedFamilies = families }
    }

    /// Names locations that widgets of these families do not fit well: the gallery offers them there
    /// behind the others.
    public func disfavoredLocations(
        _ locations: [WidgetLocation], for families: [WidgetFamily]
    ) -> some WidgetConfiguration {
        with { $0.traits.disfavor(locations, for: families) }
    }

    /// Says whether the system may take the background away.
    public func containerBackgroundRemovable(
        _ isRemovable: Bool = true
    ) -> some WidgetConfiguration {
        with { $0.traits.isContainerBackgroundRemovable = isRemovable }
    }

    func with(
        _ change: (inout AnyWidgetConfiguration) -> Void
    ) -> AnyWidgetConfiguration {
        var declaration = declaration
        change(&declaration)
        return declaration
    }
}
