import Foundation
import WidgetModel

/// The widgets an app declares, by kind, and the calls into their providers.
public struct WidgetRuntime: Sendable {
    /// Why a provider's answer is not to be had.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// What is wrong, for the gateway's operator; no values a person chose.
        public let description: String
    }

    /// The declared widgets that people can place, in the order of their declaration.
    public let gallery: [AnyWidgetConfiguration]
    private let declarations: [String: AnyWidgetConfiguration]
    /// The declared kinds, sorted.
    public let kinds: [String]
    /// Where widgets appear, and how.
    public let rules: WidgetContextRules
    /// What buttons and toggles perform, by the names under which archives keep it.
    private let intents: [String: any AppIntent.Type]

    /// The declared widgets.
    ///
    /// - Parameters:
    ///   - intents: What buttons and toggles of the widgets perform.
    ///   - rules: Where widgets appear, and how.
    ///   - dataProtection: How the files are protected that the providers read; `nil` for what each
    ///     widget's traits say.
    /// - Throws: ``WidgetDeclarationError`` when a kind or an intent is declared twice, or a
    ///   parameter may be left without a value.
    public init(
        _ widgets: [any WidgetConfiguration], intents: [any AppIntent.Type] = [],
        rules: WidgetContextRules = WidgetContextRules(), dataProtection: DataProtection? = nil
    ) throws(WidgetDeclarationError) {
        self.rules = rules
        var byName: [String: any AppIntent.Type] = [:]
        for intent in intents {
            // An archived call could mean either.
            guard byName.updateValue(intent, forKey: "\(intent)") == nil else {
                throw WidgetDeclarationError(fault: "the intent \(intent) is declared twice")
            }
        }
        self.intents = byName
        let declared = widgets.map { widget in
            var declaration = widget.declaration
            if let dataProtection { declaration.traits.dataProtection = dataProtection }
            return declaration
        }
        if let error = WidgetDeclarationError(declared) { throw error }
        gallery = declared.filter { !$0.traits.isRelevance }
        declarations = Dictionary(uniqueKeysWithValues: declared.map { ($0.kind, $0) })
        kinds = declarations.keys.sorted()
    }

    /// The generic picture of a kind.
    ///
    /// - Throws: ``Failure`` when the kind is not declared.
    public func placeholder(of info: WidgetInfo) throws -> any TimelineEntry {
        try declaration(of: info).placeholder(TimelineProviderContext(family: info.family))
    }

    /// The current moment of a widget.
    ///
    /// - Throws: ``Failure`` when the kind is not declared, or what the intent throws when it
    ///   cannot be made of the values.
    public func snapshot(of info: WidgetInfo, isPreview: Bool) async throws -> any TimelineEntry {
        let context = TimelineProviderContext(family: info.family, isPreview: isPreview)
        return try await declaration(of: info).snapshot(info.configuration, context)
    }

    /// Asks the provider for the timeline of a widget.
    ///
    /// - Throws: ``Failure`` when the kind is not declared, or what the intent or the provider
    ///   throws.
    func timeline(of info: WidgetInfo) async throws -> AnyTimeline {
        try await declaration(of: info).timeline(
            info.configuration, TimelineProviderContext(family: info.family))
    }

    /// Performs the intent of a button or toggle, with the values it was archived with, its entities
    /// found by their queries (article "Adding interactivity to widgets and Live Activities",
    /// "Understand the role of app intents"). When this returns, the widget's timeline is to be built
    /// anew.
    ///
    /// It is performed in the calling process, whatever ``AppIntent/process`` says: that is for whoever
    /// calls to heed, as ``TimelineClient/TimelineClient`` does.
    ///
    /// - Throws: ``Failure`` when the app declares no such intent, perhaps not any more;
    ///   ``IntentError`` when a value is missing or of another form; and what a query or `perform()`
    ///   throws.
    public func perform(_ call: IntentCall) async throws {
        try await intent(of: call).perform(call.parameters)
    }

    /// The type of the intent that a button or toggle performs.
    ///
    /// - Throws: ``Failure`` when the app declares no such intent, perhaps not any more.
    func intent(of call: IntentCall) throws -> any AppIntent.Type {
        guard let intent = intents[call.intent] else {
            throw Failure(description: "the app declares no intent \(call.intent)")
        }
        return intent
    }

    /// What a widget shows of one of its entries in a context. Where content is to be redacted as a
    /// placeholder, the entry is to be that of ``placeholder(of:)``.
    ///
    /// - Throws: ``Failure`` when the kind is not declared, or the entry is another kind's.
    public func draw(
        _ entry: any TimelineEntry, of info: WidgetInfo, in environment: WidgetEnvironment
    ) throws -> WidgetNode {
        guard let node = try declaration(of: info).draw(entry, environment) else {
            throw Failure(description: "the entry is not of this kind's type")
        }
        return node
    }

    /// A timeline as an archive keeps it: drawn for every context of the widget on `device`; for none
    /// where there is no device.
    ///
    /// - Throws: ``Failure`` when the kind is not declared, or an entry is another kind's.
    public func archive(
        _ timeline: AnyTimeline, of info: WidgetInfo, on device: WidgetDevice?
    ) throws -> TimelineArchive {
        let traits = try declaration(of: info).traits
        let environments =
            device.map { rules.drawnEnvironments(of: info, with: traits, on: $0) } ?? []
        return try TimelineArchive(timeline, of: info, with: traits, for: environments) {
            entry, environment in
            try draw(entry, of: info, in: environment)
        }
    }

    /// The placeholder as an archive keeps it.
    ///
    /// - Throws: ``Failure`` when the kind is not declared.
    public func archivedPlaceholder(
        of info: WidgetInfo, on device: WidgetDevice?
    ) throws -> TimelineArchive {
        let traits = try declaration(of: info).traits
        let entry = try placeholder(of: info)
        var drawings: [TimelineArchive.Context: WidgetNode] = [:]
        if let device {
            for environment in rules.placeholderEnvironments(of: info, with: traits, on: device) {
                var context = TimelineArchive.Context(environment)
                drawings[context] = try draw(entry, of: info, in: environment)
                // There is nothing in it to hide.
                context.isRedacted = true
                drawings[context] = drawings[TimelineArchive.Context(environment)]
            }
        }
        return TimelineArchive(
            widget: info,
            entries: [.init(date: .distantPast, relevance: nil, drawings: drawings)],
            reloadDate: nil, traits: traits)
    }

    /// What the declared widget says of itself; `nil` when the kind is not declared.
    public func traits(ofKind kind: String) -> WidgetTraits? { declarations[kind]?.traits }

    /// The kinds that have a set of recommendations, in their order.
    var recommendedKinds: [String] {
        kinds.filter { declarations[$0]?.recommendations != nil }
    }

    /// The recommended configurations of a kind; `nil` when it has no set.
    ///
    /// - Throws: What the provider throws.
    func recommendations(ofKind kind: String) async throws -> [RecommendationSet.Item]? {
        try await declarations[kind]?.recommendations?()
    }

    /// Whether nobody places widgets of this kind.
    func isRelevance(ofKind kind: String) -> Bool { traits(ofKind: kind)?.isRelevance ?? false }

    /// The kind whose widgets those of this kind stand in for.
    func associatedKind(ofKind kind: String) -> String? { declarations[kind]?.associatedKind }

    /// The kinds that people place, whose providers say when they are relevant.
    var kindsWithRelevance: [String] { kinds.filter { declarations[$0]?.relevance != nil } }

    /// When which configurations of a kind are relevant; none for a kind that is not declared.
    func relevance(ofKind kind: String) async -> [RelevantConfiguration] {
        await declarations[kind]?.relevance?() ?? []
    }

    private func declaration(of info: WidgetInfo) throws -> AnyWidgetConfiguration {
        guard let declaration = declarations[info.kind] else {
            throw Failure(description: "the app declares no widget of this kind")
        }
        return declaration
    }
}

extension AppIntent {
    fileprivate static func perform(_ values: [String: ParameterValue]) async throws {
        _ = try await resolved(from: values).perform()
    }
}
