import Foundation
import WidgetModel

/// The widgets an app declares, by kind, and the calls into their providers.
public struct WidgetRuntime: Sendable {
    /// The declared widgets that people can place, in the order of their declaration.
    public let gallery: [AnyWidgetConfiguration]
    private let declarations: [String: AnyWidgetConfiguration]
    /// The declared kinds, sorted.
    public let kinds: [String]
    /// The rules for the contexts in which widgets appear.
    public let rules: WidgetContextRules
    /// The intents of buttons and toggles, by the names that archives use.
    private let intents: [String: any AppIntent.Type]

    /// Creates a runtime for declared widgets.
    ///
    /// - Parameters:
    ///   - intents: The intents that the widgets' buttons and toggles perform.
    ///   - rules: The rules for the contexts in which widgets appear.
    ///   - dataProtection: The protection of the files that the providers read; `nil` for that of
    ///     each widget's traits.
    /// - Throws: ``WidgetDeclarationError`` when a kind or an intent is declared twice, or a
    ///   parameter may be left without a value.
    public init(
        _ widgets: [any WidgetConfiguration], intents: [any AppIntent.Type] = [],
        rules: WidgetContextRules = WidgetContextRules(), dataProtection: DataProtection? = nil
    ) throws(WidgetDeclarationError) {
        self.rules = rules
        var byName: [String: any AppIntent.Type] = [:]
        for intent in intents {
            // The name in an archived call would be ambiguous.
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

    /// Returns the placeholder of a widget, which contains no data.
    ///
    /// - Throws: ``WidgetFailure`` when the kind is not declared.
    public func placeholder(of info: WidgetInfo) throws -> any TimelineEntry {
        try declaration(of: info).placeholder(TimelineProviderContext(family: info.family))
    }

    /// Returns the current entry of a widget.
    ///
    /// - Throws: ``WidgetFailure`` when the kind is not declared; or an error of the intent when it
    ///   cannot be created from the values.
    public func snapshot(of info: WidgetInfo, isPreview: Bool) async throws -> any TimelineEntry {
        let context = TimelineProviderContext(family: info.family, isPreview: isPreview)
        return try await declaration(of: info).snapshot(info.configuration, context)
    }

    /// Asks the provider for the timeline of a widget.
    ///
    /// - Throws: ``WidgetFailure`` when the kind is not declared; or the error of the intent or the
    ///   provider.
    func timeline(of info: WidgetInfo) async throws -> AnyTimeline {
        try await declaration(of: info).timeline(
            info.configuration, TimelineProviderContext(family: info.family))
    }

    /// Performs the intent of a button or toggle with the values in the archive; queries find its
    /// entities (article "Adding interactivity to widgets and Live Activities", "Understand the
    /// role of app intents"). When this returns, the widget's timeline must be rebuilt.
    ///
    /// The intent runs in the calling process, whatever ``AppIntent/process`` states: the caller
    /// must choose the process, as ``TimelineClient/TimelineClient`` does.
    ///
    /// - Throws: ``WidgetFailure`` when the app does not, or no longer, declare the intent;
    ///   ``IntentError`` when a value is missing or malformed; or the error of a query or of
    ///   `perform()`.
    public func perform(_ call: IntentCall) async throws {
        try await intent(of: call).perform(call.parameters)
    }

    /// Returns the type of the intent that a button or toggle performs.
    ///
    /// - Throws: ``WidgetFailure`` when the app does not, or no longer, declare the intent.
    func intent(of call: IntentCall) throws -> any AppIntent.Type {
        guard let intent = intents[call.intent] else {
            throw WidgetFailure(description: "the app declares no intent \(call.intent)")
        }
        return intent
    }

    /// Returns the content of one entry of a widget in a context. Where content is redacted as a
    /// placeholder, pass the entry of ``placeholder(of:)``.
    ///
    /// - Throws: ``WidgetFailure`` when the kind is not declared, or the entry belongs to another
    ///   kind.
    public func draw(
        _ entry: any TimelineEntry, of info: WidgetInfo, in environment: WidgetEnvironment
    ) throws -> WidgetNode {
        guard let node = try declaration(of: info).draw(entry, environment) else {
            throw WidgetFailure(description: "the entry is not of this kind's type")
        }
        return node
    }

    /// Returns a timeline in its archived form: drawn for every context of the widget on `device`,
    /// or for none without a device.
    ///
    /// - Throws: ``WidgetFailure`` when the kind is not declared, or an entry belongs to another
    ///   kind.
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

    /// Returns the placeholder in its archived form.
    ///
    /// - Throws: ``WidgetFailure`` when the kind is not declared.
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
                // It contains nothing to redact, so one drawing serves both.
                context.isRedacted = true
                drawings[context] = drawings[TimelineArchive.Context(environment)]
            }
        }
        return TimelineArchive(
            widget: info,
            entries: [.init(date: .distantPast, relevance: nil, drawings: drawings)],
            reloadDate: nil, traits: traits)
    }

    /// Returns the traits of a declared widget; `nil` when the kind is not declared.
    public func traits(ofKind kind: String) -> WidgetTraits? { declarations[kind]?.traits }

    /// The kinds with a recommendation set, sorted.
    var recommendedKinds: [String] {
        kinds.filter { declarations[$0]?.recommendations != nil }
    }

    /// Returns the recommended configurations of a kind; `nil` when it has no set.
    ///
    /// - Throws: The error of the provider.
    func recommendations(ofKind kind: String) async throws -> [RecommendationSet.Item]? {
        try await declarations[kind]?.recommendations?()
    }

    /// Returns whether widgets of this kind are relevance widgets, which people do not place.
    func isRelevance(ofKind kind: String) -> Bool { traits(ofKind: kind)?.isRelevance ?? false }

    /// Returns the kind whose widgets those of this kind replace.
    func associatedKind(ofKind kind: String) -> String? { declarations[kind]?.associatedKind }

    /// The kinds that people place and whose providers report relevance.
    var kindsWithRelevance: [String] { kinds.filter { declarations[$0]?.relevance != nil } }

    /// Returns the relevant configurations of a kind; none for a kind that is not declared.
    func relevance(ofKind kind: String) async -> [RelevantConfiguration] {
        await declarations[kind]?.relevance?() ?? []
    }

    private func declaration(of info: WidgetInfo) throws -> AnyWidgetConfiguration {
        guard let declaration = declarations[info.kind] else {
            throw WidgetFailure(description: "the app declares no widget of this kind")
        }
        return declaration
    }
}

extension AppIntent {
    fileprivate static func perform(_ values: [String: ParameterValue]) async throws {
        _ = try await resolved(from: values).perform()
    }
}
