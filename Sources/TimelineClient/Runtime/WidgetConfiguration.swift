import Foundation
import WidgetModel

/// A widget as an app declares it: a ``StaticConfiguration``, ``AppIntentConfiguration`` or
/// ``RelevanceConfiguration``, with its modifiers.
public protocol WidgetConfiguration: Sendable {
    /// The declaration with its types erased.
    var declaration: AnyWidgetConfiguration { get }
}

/// A widget without configuration (article "Creating a widget extension", "Add configuration
/// details").
public struct StaticConfiguration<Provider: TimelineProvider>: WidgetConfiguration {
    private let kind: String
    private let provider: Provider
    private let draw: AnyWidgetConfiguration.Draw

    /// Declares a widget.
    ///
    /// - Parameters:
    ///   - kind: The kind, the same string as in the catalog.
    ///   - content: The content for an entry, in each of the widget's contexts.
    public init(
        kind: String, provider: Provider,
        @ViewBuilder content: @escaping @Sendable (Provider.Entry) -> some View
    ) {
        self.kind = kind
        self.provider = provider
        draw = AnyWidgetConfiguration.drawing(content)
    }

    /// Declares a widget whose entries are shown by another component, which the client informs of
    /// them.
    ///
    /// - Parameter kind: The kind, the same string as in the catalog.
    public init(kind: String, provider: Provider) {
        self.init(kind: kind, provider: provider) { _ in EmptyView() }
    }

    /// The declaration with its types erased.
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

/// A widget that people configure with an app intent (article "Making a configurable widget",
/// "Handle customized values in your widget").
public struct AppIntentConfiguration<
    Intent: WidgetConfigurationIntent, Provider: AppIntentTimelineProvider
>: WidgetConfiguration where Provider.Intent == Intent {
    private let kind: String
    private let provider: Provider
    private let draw: AnyWidgetConfiguration.Draw

    /// Declares a widget.
    ///
    /// - Parameters:
    ///   - kind: The kind, the same string as in the catalog.
    ///   - content: The content for an entry, in each of the widget's contexts.
    public init(
        kind: String, intent: Intent.Type, provider: Provider,
        @ViewBuilder content: @escaping @Sendable (Provider.Entry) -> some View
    ) {
        self.kind = kind
        self.provider = provider
        draw = AnyWidgetConfiguration.drawing(content)
    }

    /// Declares a widget whose entries are shown by another component, which the client informs of
    /// them.
    ///
    /// - Parameter kind: The kind, the same string as in the catalog.
    public init(kind: String, intent: Intent.Type, provider: Provider) {
        self.init(kind: kind, intent: intent, provider: provider) { _ in EmptyView() }
    }

    /// The declaration with its types erased.
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

/// A declared widget with its types erased, as the runtime and a gallery use it.
public struct AnyWidgetConfiguration: WidgetConfiguration {
    typealias Values = [String: ParameterValue]
    typealias Draw = @Sendable (any TimelineEntry, WidgetEnvironment) -> WidgetNode?

    /// The widget kind.
    public let kind: String
    /// The display name in the gallery; the kind unless the app sets another.
    public internal(set) var displayName: LocalizedStringResource
    /// The description in the gallery.
    public internal(set) var description: LocalizedStringResource?
    /// The properties that decide which contexts the widget fits.
    public internal(set) var traits = WidgetTraits()
    /// The configurable parameters in the order in which they are presented; none for a widget
    /// without configuration.
    public internal(set) var parameters: [IntentParameterDeclaration] = []

    let placeholder: @Sendable (TimelineProviderContext) -> any TimelineEntry
    let snapshot: @Sendable (Values, TimelineProviderContext) async throws -> any TimelineEntry
    let timeline: @Sendable (Values, TimelineProviderContext) async throws -> AnyTimeline
    /// Draws an entry; returns `nil` for an entry of another widget's type.
    let draw: Draw
    /// The push handler; `nil` for a widget that does not accept pushes.
    var pushHandler: (any WidgetPushHandler.Type)?
    /// Returns the recommendation set; `nil` for a widget without configuration, which has no set,
    /// not even an empty one.
    var recommendations: (@Sendable () async throws -> [RecommendationSet.Item])?
    /// Returns the relevant configurations; `nil` for a relevance widget, whose entries state them.
    var relevance: (@Sendable () async -> [RelevantConfiguration])?
    /// The kind whose widgets this relevance widget replaces.
    var associatedKind: String?
    /// The name of the configuration intent.
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

    /// The declaration itself.
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
    /// Sets the widget's display name in the gallery.
    public func configurationDisplayName(
        _ name: LocalizedStringResource
    ) -> some WidgetConfiguration {
        with { $0.displayName = name }
    }

    /// Sets the widget's description in the gallery.
    public func description(_ text: LocalizedStringResource) -> some WidgetConfiguration {
        with { $0.description = text }
    }

    /// Sets the families in which the widget can be placed.
    public func supportedFamilies(_ families: [WidgetFamily]) -> some WidgetConfiguration {
        with { $0.traits.supportedFamilies = families }
    }

    /// Marks locations as not fitting well for these families: the gallery lists them there after
    /// the others.
    public func disfavoredLocations(
        _ locations: [WidgetLocation], for families: [WidgetFamily]
    ) -> some WidgetConfiguration {
        with { $0.traits.disfavor(locations, for: families) }
    }

    /// Sets whether the system may remove the background.
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
