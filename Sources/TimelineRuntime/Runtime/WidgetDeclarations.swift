import Foundation
import WidgetModel
import WidgetViews

/// The widgets and controls that an app declares, and the calls into their providers.
public struct WidgetDeclarations: Sendable {
    /// The declared widgets that people can place, in the order of their declaration.
    public let gallery: [AnyWidgetConfiguration]
    /// The declared controls, in the order of their declaration.
    public let controls: [AnyControlConfiguration]
    /// The translations of the app's texts.
    public internal(set) var strings: StringCatalog
    let declarations: [String: AnyWidgetConfiguration]
    /// The declared kinds, sorted.
    public let kinds: [String]
    /// The declared Live Activities, by the names of their attributes' types.
    let activities: [String: AnyActivityConfiguration]
    /// The rules for the contexts in which widgets appear.
    public let rules: WidgetContextRules
    /// The intents of buttons and toggles: those declared and those drawn.
    private let intents: DrawnIntents

    /// Creates declarations.
    ///
    /// - Parameters:
    ///   - intents: The intents of buttons and toggles. Drawn intents are found without it; a
    ///     process that draws nothing, such as the app, must state them.
    ///   - dataProtection: The protection of the files that the providers read; `nil` for that of
    ///     each widget's traits.
    /// - Throws: ``WidgetDeclarationError`` when a kind, an intent or a Live Activity is declared
    ///   twice, or a parameter may be left without a value.
    public init(
        _ widgets: [any WidgetConfiguration], controls: [any ControlWidgetConfiguration] = [],
        intents: [any AppIntent.Type] = [], rules: WidgetContextRules = WidgetContextRules(),
        dataProtection: DataProtection? = nil, strings: StringCatalog = StringCatalog()
    ) throws(WidgetDeclarationError) {
        self.rules = rules
        self.strings = strings
        self.controls = controls.map { $0.declaration }
        var byName: [String: any AppIntent.Type] = [:]
        for intent in intents {
            // The name in an archived call would be ambiguous.
            guard byName.updateValue(intent, forKey: "\(intent)") == nil else {
                throw WidgetDeclarationError(fault: "the intent \(intent) is declared twice")
            }
        }
        self.intents = DrawnIntents(byName)
        let all = widgets.map { widget in
            var declaration = widget.declaration
            if let dataProtection { declaration.traits.dataProtection = dataProtection }
            return declaration
        }
        let declared = all.filter { !$0.isEmpty }
        var activities: [String: AnyActivityConfiguration] = [:]
        for activity in all.compactMap(\.activity)
        where activities.updateValue(activity, forKey: activity.type) != nil {
            throw WidgetDeclarationError(fault: "\(activity.type): declared twice")
        }
        self.activities = activities
        if let error = WidgetDeclarationError(declared) { throw error }
        if let error = WidgetDeclarationError(controls: self.controls) { throw error }
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
    /// - Parameter limit: The time in which the provider must answer: a person is waiting.
    /// - Throws: ``WidgetFailure`` when the kind is not declared; an error of the intent when it
    ///   cannot be created from the values; or an error when the time has passed.
    public func snapshot(
        of info: WidgetInfo, isPreview: Bool, within limit: Duration = .seconds(5)
    ) async throws -> any TimelineEntry {
        let context = TimelineProviderContext(family: info.family, isPreview: isPreview)
        let snapshot = try declaration(of: info).snapshot
        return try await Deadline.run(limit) { try await snapshot(info.configuration, context) }
    }

    /// Asks the provider for the timeline of a widget. Throws ``WidgetFailure`` when the kind is
    /// not declared; or the error of the intent or the provider.
    func timeline(of info: WidgetInfo) async throws -> AnyTimeline {
        try await declaration(of: info).timeline(
            info.configuration, TimelineProviderContext(family: info.family))
    }

    /// Performs the intent of a button or toggle with the values in the archive; queries find its
    /// entities (article "Adding interactivity to widgets and Live Activities", "Understand the
    /// role of app intents"). When this returns, the widget's timeline must be rebuilt.
    ///
    /// The intent runs in the calling process, whatever ``AppIntent/process`` states: the caller
    /// must choose the process, as ``TimelineClient`` does.
    ///
    /// - Throws: ``WidgetFailure`` when the app does not, or no longer, declare the intent;
    ///   ``IntentError`` when a value is missing or malformed; or the error of a query or of
    ///   `perform()`.
    public func perform(_ call: IntentCall) async throws {
        try await intent(of: call).perform(call.parameters)
    }

    /// Returns the type of the intent that a button or toggle performs. Throws ``WidgetFailure``
    /// when the app neither declares the intent nor has drawn it.
    func intent(of call: IntentCall) throws -> any AppIntent.Type {
        guard let intent = intents[name: call.intent] else {
            throw WidgetFailure(description: "the app declares no intent \(call.intent)")
        }
        return intent
    }

    /// Returns the content of one entry of a widget in a context. Where content is redacted as a
    /// placeholder, pass the entry of ``placeholder(of:)``.
    ///
    /// - Throws: ``WidgetFailure`` when the kind is not declared, the entry belongs to another
    ///   kind, or a button cannot work because a parameter of its intent has no value. The buttons
    ///   of a placeholder are hidden, and may lack values.
    public func draw(
        _ entry: any TimelineEntry, of info: WidgetInfo, in environment: WidgetEnvironment
    ) throws -> WidgetNode {
        let draw = try declaration(of: info).draw
        let isPlaceholder = environment.redactionReasons.contains(.placeholder)
        return try noting(faults: !isPlaceholder) {
            guard let node = draw(entry, environment) else {
                throw WidgetFailure(description: "the entry is not of this kind's type")
            }
            return node
        }
    }

    /// Calls a function that draws, and adds the intents of what it draws. Throws when a button
    /// cannot work, unless faults are allowed.
    func noting<Drawing>(faults: Bool = true, _ draw: () throws -> Drawing) throws -> Drawing {
        let drawn = DrawnIntents()
        let drawing = try DrawnIntents.$current.withValue(drawn) {
            try strings.translating { try draw() }
        }
        intents.add(drawn)
        if faults, let fault = drawn.fault { throw WidgetFailure(description: fault) }
        return drawing
    }

    /// Returns a placed widget with its configuration intent, for
    /// ``WidgetInfo/widgetConfigurationIntent(of:)``.
    public func resolved(_ info: WidgetInfo) async -> WidgetInfo {
        await declarations[info.kind]?.resolve?(info) ?? info
    }

    /// Returns the faults of the values of a widget that is about to be placed; none for an unknown
    /// kind. Whether its entities exist is known only when it is built.
    public func faults(of info: WidgetInfo) -> [IntentError] {
        declarations[info.kind]?.parameters.faults(in: info.configuration) ?? []
    }

    /// Returns the drawing of a control with its current value.
    ///
    /// - Parameters:
    ///   - values: The configuration that the person chose.
    ///   - isPreview: Whether it is for a gallery, and sample data is allowed.
    ///   - device: The device with the person's locale; `nil` for an iPhone in English.
    /// - Throws: ``WidgetFailure`` when the kind is not declared, or the control cannot work; or
    ///   the error of the intent or of the provider of values.
    public func control(
        ofKind kind: String, with values: [String: ParameterValue] = [:], isPreview: Bool = false,
        on device: WidgetDevice? = nil
    ) async throws -> WidgetNode {
        guard let control = controls.first(where: { $0.kind == kind }) else {
            throw WidgetFailure(description: "the app declares no control of this kind")
        }
        var place = device ?? WidgetDevice(.iOS)
        // A control is drawn the same wherever it is shown.
        (place.platform, place.osVersion) = (.iOS, nil)
        let environment = try WidgetContextRules().environment(
            of: WidgetInfo(kind: kind, family: .systemSmall), with: WidgetTraits(),
            at: .homeScreen, on: place)
        let drawn = DrawnIntents()
        let node = try await DrawnIntents.$current.withValue(drawn) {
            try await strings.translating {
                try await control.draw(values, environment, isPreview)
            }
        }
        intents.add(drawn)
        if let fault = drawn.fault { throw WidgetFailure(description: fault) }
        return node
    }

    /// Draws a widget so that the intents of its buttons are known: a program that has just started
    /// shows what an earlier run of it drew. Throws the error of the provider.
    func findIntents(of info: WidgetInfo, on device: WidgetDevice?) async throws {
        _ = try archive(try await timeline(of: info), of: info, on: device)
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

    var recommendedKinds: [String] {
        kinds.filter { declarations[$0]?.recommendations != nil }
    }

    /// Returns the recommended configurations of a kind; `nil` when it has no set. Throws the error
    /// of the provider.
    func recommendations(ofKind kind: String) async throws -> [RecommendationSet.Item]? {
        try await strings.translating { try await declarations[kind]?.recommendations?() }
    }

    func isRelevance(ofKind kind: String) -> Bool { traits(ofKind: kind)?.isRelevance ?? false }

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
