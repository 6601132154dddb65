import Foundation
import WidgetModel
import WidgetViews

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

    /// Declares a widget, whose content is drawn for each of its contexts. Its kind is the same
    /// string as in the catalog.
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

    /// Declares a widget, whose content is drawn for each of its contexts. Its kind is the same
    /// string as in the catalog.
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
                let intent: Intent
                do {
                    intent = try await Intent.resolved(from: values)
                } catch let error as IntentError where error.isOfDeletedEntity {
                    return AnyTimeline(
                        try await provider.timeline(
                            withoutEntityOf: error.parameter, in: context))
                }
                return AnyTimeline(try await provider.timeline(for: intent, in: context))
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
        declaration.summary = Intent.parameterSummary.sentence
        declaration.intent = "\(Intent.self)"
        declaration.resolve = { await $0.resolved(as: Intent.self) }
        return declaration
    }
}

/// No widget, where a declaration is required.
public struct EmptyWidgetConfiguration: WidgetConfiguration {
    /// Creates no widget.
    public init() {}

    /// A declaration that a runtime leaves out.
    public var declaration: AnyWidgetConfiguration {
        struct Nothing: TimelineEntry { let date: Date }
        var declaration = AnyWidgetConfiguration(
            kind: "", placeholder: { _ in Nothing(date: .distantPast) },
            snapshot: { _, _ in Nothing(date: .distantPast) },
            timeline: { _, _ in AnyTimeline(entries: [], reloadDate: nil) }, draw: { _, _ in nil })
        declaration.isEmpty = true
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
    /// The configurable parameters in the order in which they are presented.
    public internal(set) var parameters: [IntentParameterDeclaration] = []

    let placeholder: @Sendable (TimelineProviderContext) -> any TimelineEntry
    let snapshot: @Sendable (Values, TimelineProviderContext) async throws -> any TimelineEntry
    let timeline: @Sendable (Values, TimelineProviderContext) async throws -> AnyTimeline
    /// Draws an entry; returns `nil` for an entry of another widget's type.
    let draw: Draw
    /// The push handler; `nil` for a widget that does not accept pushes.
    var pushHandler: (any WidgetPushHandler.Type)?
    /// Returns the recommendation set; `nil` for a widget without configuration, which has none.
    var recommendations: (@Sendable () async throws -> [RecommendationSet.Item])?
    /// Returns the relevant configurations; `nil` for a relevance widget, whose entries state them.
    var relevance: (@Sendable () async -> [RelevantConfiguration])?
    /// The kind whose widgets this relevance widget replaces.
    var associatedKind: String?
    /// The sentence of the intent's `parameterSummary`; empty if it has none.
    var summary = ""
    var intent: String?
    var resolve: (@Sendable (WidgetInfo) async -> WidgetInfo)?
    /// Whether people are asked for the configuration when they add the widget.
    public internal(set) var asksForConfiguration = false
    /// Whether a runtime leaves the declaration out.
    var isEmpty = false
    /// The Live Activity that is declared here in place of a widget.
    var activity: AnyActivityConfiguration?

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

    /// Lets the content reach the edges of the widget.
    public func contentMarginsDisabled() -> some WidgetConfiguration {
        with { $0.traits.disablesContentMargins = true }
    }

    /// Asks people for the configuration when they add the widget.
    public func promptsForUserConfiguration() -> some WidgetConfiguration {
        with { $0.asksForConfiguration = true }
    }

    /// Sets the ways in which the widget may be mounted on a surface.
    public func supportedMountingStyles(
        _ styles: [WidgetMountingStyle]
    ) -> some WidgetConfiguration {
        with { $0.traits.mountingStyles = Set(styles) }
    }

    /// Sets the material of the widget on a surface.
    public func widgetTexture(_ texture: WidgetTexture) -> some WidgetConfiguration {
        with { $0.traits.texture = texture }
    }

    /// Sets the protection of the extension's files, in place of the Data Protection entitlement:
    /// the placeholder replaces the widget while a lock protects them (article "Creating a widget
    /// extension", "Hide sensitive content").
    public func dataProtection(_ protection: DataProtection) -> some WidgetConfiguration {
        with { $0.traits.dataProtection = protection }
    }

    /// Sets whether the content has its own look where people hide sensitive content. If not, the
    /// placeholder replaces the whole widget there (the same heading).
    public func configuresRedaction(_ configures: Bool = true) -> some WidgetConfiguration {
        with { $0.traits.configuresRedaction = configures }
    }

    /// Accepts what is done when the transfers of a background session have ended. No system here
    /// runs such sessions, so it is never called.
    public func onBackgroundURLSessionEvents(
        matching: (@Sendable (String) -> Bool)? = nil,
        _ action: @escaping @Sendable (String, @escaping @Sendable () -> Void) -> Void
    ) -> some WidgetConfiguration {
        declaration
    }

    /// Accepts the same for one session.
    public func onBackgroundURLSessionEvents(
        matching identifier: String,
        _ action: @escaping @Sendable (String, @escaping @Sendable () -> Void) -> Void
    ) -> some WidgetConfiguration {
        declaration
    }

    func with(
        _ change: (inout AnyWidgetConfiguration) -> Void
    ) -> AnyWidgetConfiguration {
        var declaration = declaration
        change(&declaration)
        return declaration
    }
}
