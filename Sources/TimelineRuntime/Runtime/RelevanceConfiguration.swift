import Foundation
import WidgetModel
import WidgetViews

/// A widget that a watch shows while it is relevant; people cannot place, pin or configure it
/// (article "Creating a widget extension", "Add a widget target to your app"). Requires watchOS 26.
public struct RelevanceConfiguration<Provider: RelevanceEntriesProvider>: WidgetConfiguration {
    /// The maximum number of contexts; the provider's first ones are used.
    public static var attributesMax: Int { 50 }

    private let kind: String
    private let provider: Provider
    private let draw: AnyWidgetConfiguration.Draw

    /// Declares a widget. Its kind is the same string as in the catalog, whose `configuration` is
    /// `relevance`.
    public init(
        kind: String, provider: Provider,
        @ViewBuilder content: @escaping @Sendable (Provider.Entry) -> some View
    ) {
        self.kind = kind
        self.provider = provider
        draw = { entry, environment in
            (entry as? RelevantEntry<Provider.Entry>).map { entry in
                environment.draw { content(entry.content) }
            }
        }
    }

    /// The declaration with its types erased.
    public var declaration: AnyWidgetConfiguration {
        let placeholder: @Sendable (TimelineProviderContext) -> any TimelineEntry = {
            [provider] context in
            RelevantEntry(
                content: provider.placeholder(context: .init(context)), when: .date(.distantPast))
        }
        var declaration = AnyWidgetConfiguration(
            kind: kind, placeholder: placeholder, snapshot: { _, context in placeholder(context) },
            timeline: { [provider] _, context in
                try await Self.timeline(of: provider, in: .init(context))
            },
            draw: draw)
        declaration.traits.supportedFamilies = [WidgetDeclarations.relevanceFamily]
        declaration.traits.isRelevance = true
        return declaration
    }

    /// Returns a timeline of all contexts with their content, to be replaced when the last context
    /// has ended.
    private static func timeline(
        of provider: Provider, in context: RelevanceEntriesProviderContext
    ) async throws -> AnyTimeline {
        var entries: [RelevantEntry<Provider.Entry>] = []
        for attribute in try await provider.relevance().attributes.prefix(attributesMax) {
            let entry = try await provider.entry(
                configuration: attribute.configuration, context: context)
            entries.append(RelevantEntry(content: entry, when: attribute.context))
        }
        return AnyTimeline(
            entries: entries.sorted { $0.date < $1.date }, reloadDate: entries.map(\.end).max())
    }
}

/// An entry of a relevance widget as a timeline entry: relevant from its date, for its duration.
private struct RelevantEntry<Content: RelevanceEntry>: TimelineEntry {
    let content: Content
    let date: Date
    let end: Date

    init(content: Content, when context: RelevantContext) {
        self.content = content
        date = context.start
        end = context.end
    }

    var relevance: TimelineEntryRelevance? {
        TimelineEntryRelevance(score: 1, duration: end.timeIntervalSince(date))
    }
}

extension RelevanceEntriesProviderContext {
    fileprivate init(_ context: TimelineProviderContext) {
        self.init(displaySize: context.displaySize, isPreview: context.isPreview)
    }
}

extension WidgetConfiguration {
    /// Sets the kind whose widgets a relevance widget replaces: they are hidden in a Smart Stack
    /// while it is shown.
    public func associatedKind(_ kind: String) -> some WidgetConfiguration {
        with { $0.associatedKind = kind }
    }
}

extension WidgetDeclarations {
    /// The only family in which a watch's Smart Stack shows relevance widgets.
    static var relevanceFamily: WidgetFamily { .accessoryRectangular }

    /// Returns the relevance widgets, which people do not place: one for each kind, for all its
    /// configurations.
    func relevanceWidgets(on device: WidgetDevice?) -> [WidgetInfo] {
        guard Self.heedsRelevance(device), device?.has(major: 26) ?? true else { return [] }
        return kinds.filter { isRelevance(ofKind: $0) }.map {
            WidgetInfo(kind: $0, family: Self.relevanceFamily)
        }
    }

    /// Returns whether providers are asked for their relevance; iPhone and iPad use the relevance
    /// of entries instead. On platforms that are not Apple's, the app decides, so they are asked.
    static func heedsRelevance(_ device: WidgetDevice?) -> Bool {
        device.map { $0.platform == .watchOS } ?? true
    }
}

/// A configuration with a time at which it is relevant.
public struct RelevantConfiguration: Sendable, Hashable {
    /// The values of the intent; empty for a widget without configuration.
    public var configuration: [String: ParameterValue]
    /// The time at which it is relevant.
    public var context: RelevantContext

    /// Returns whether a placed widget has this configuration. A missing value equals an unset one.
    func isConfiguration(of widget: WidgetInfo) -> Bool {
        configuration.filter { $0.value != .unset }
            == widget.configuration.filter { $0.value != .unset }
    }
}
