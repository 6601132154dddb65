import Foundation
import WidgetModel

/// A configuration that is relevant for a while.
public struct RelevantConfiguration: Sendable, Hashable {
    /// The values of the intent; empty for a widget that nobody can configure.
    public var configuration: [String: ParameterValue]
    /// When it is relevant.
    public var context: RelevantContext

    /// Whether a placed widget has this configuration: what is not chosen is the same as unset.
    func isConfiguration(of widget: WidgetInfo) -> Bool {
        configuration.filter { $0.value != .unset }
            == widget.configuration.filter { $0.value != .unset }
    }
}

/// A widget in a Smart Stack.
public struct SmartStackCard: Sendable, Equatable {
    /// The widget. One that nobody placed may have several cards.
    public var widget: WidgetInfo
    /// What it shows.
    public var node: WidgetNode
    /// Whether it is there, or further up, because it is relevant now.
    public var isRelevant: Bool
}

extension TimelineClient {
    /// The cards of a Smart Stack at `date`, the most relevant first and otherwise in the order in
    /// which widgets were placed (Apple, Increasing the visibility of widgets in Smart Stacks):
    /// - on a watch relevance widgets, each as often as it is relevant, in place of the widgets of their
    ///   associated kind; then those whose providers say that they are relevant; then the others;
    /// - on iPhone and iPad by the score of the entry that is shown; one of 0 or less, or whose duration
    ///   is over, is not relevant.
    ///
    /// Empty on platforms without Smart Stacks. Only what the lock hides is left out of relevance
    /// widgets; what people placed has its placeholder.
    public func smartStack(
        at date: Date = .now, state: WidgetDeviceState = WidgetDeviceState()
    ) -> [SmartStackCard] {
        guard let device = configuration.device,
            let location = Self.smartStackLocation(on: device.platform)
        else { return [] }
        var unsorted: [(card: SmartStackCard, score: Float)] = []
        var replaced: Set<String> = []
        var seen: Set<WidgetInfo> = []
        for widget in widgets where seen.insert(widget).inserted {
            guard let traits = runtime.traits(ofKind: widget.kind),
                let environment = try? runtime.rules.environment(
                    of: widget, with: traits, at: location, on: device, state: state)
            else { continue }
            guard runtime.isRelevance(ofKind: widget.kind) else {
                guard let node = shown(widget, at: date, in: environment)?.node else { continue }
                let score = score(of: widget, at: date)
                unsorted.append(
                    (.init(widget: widget, node: node, isRelevant: score > 0), score))
                continue
            }
            guard !environment.redactionReasons.contains(.placeholder) else { continue }
            let relevant = timelines[widget]?.relevant(at: date, in: environment) ?? []
            // They are there for nothing else.
            unsorted += relevant.map {
                (.init(widget: widget, node: $0.node, isRelevant: true), .infinity)
            }
            if !relevant.isEmpty, let kind = runtime.associatedKind(ofKind: widget.kind) {
                replaced.insert(kind)
            }
        }
        return unsorted.enumerated()
            .filter { !replaced.contains($0.element.card.widget.kind) }
            .sorted { ($1.element.score, $0.offset) < ($0.element.score, $1.offset) }
            .map(\.element.card)
    }

    private static func smartStackLocation(
        on platform: WidgetDevice.Platform
    ) -> WidgetLocation? {
        switch platform {
        case .watchOS: .smartStack
        case .iOS, .iPadOS: .homeScreen
        case .macOS, .visionOS: nil
        }
    }

    private func score(of widget: WidgetInfo, at date: Date) -> Float {
        if WidgetRuntime.heedsRelevance(configuration.device) {
            let isRelevant = relevance[widget.kind, default: []].contains {
                $0.context.contains(date) && $0.isConfiguration(of: widget)
            }
            return isRelevant ? 1 : 0
        }
        return timelines[widget]?.score(at: date) ?? 0
    }

    /// Asks the provider of a kind that people place for its relevance. Of several questions the
    /// answer to the last counts; without one in time what was known stays.
    func askForRelevance(ofKind kind: String) async {
        let number = relevanceQuestions[kind, default: 0] + 1
        relevanceQuestions[kind] = number
        let answer = try? await Deadline.run(configuration.buildDeadline) { [runtime] in
            await runtime.relevance(ofKind: kind)
        }
        guard let answer, relevanceQuestions[kind] == number else { return }
        relevance[kind] = answer
    }

    /// What is known of a kind's relevance is stale: its provider is asked again. That of a relevance
    /// widget is asked for its entries too, by its budget.
    func invalidateRelevance(ofKind kind: String) async {
        tell(.relevanceInvalidated(kind: kind))
        if runtime.isRelevance(ofKind: kind) {
            handle(.reloadRequested(.kind(kind), .app))
        } else if runtime.kindsWithRelevance.contains(kind),
            WidgetRuntime.heedsRelevance(configuration.device)
        {
            await askForRelevance(ofKind: kind)
        }
    }

    /// What is placed, with the widgets that nobody places.
    static func completed(
        _ widgets: [WidgetInfo], _ runtime: WidgetRuntime, on device: WidgetDevice?
    ) -> [WidgetInfo] {
        widgets.filter { !runtime.isRelevance(ofKind: $0.kind) }
            + runtime.relevanceWidgets(on: device)
    }
}

extension TimelineArchive {
    /// What is shown of every entry that is relevant at `date`, and since when it is: of a relevance
    /// widget.
    package func relevant(
        at date: Date, in environment: WidgetEnvironment
    ) -> [(since: Date, node: WidgetNode)] {
        entries.compactMap { entry in
            guard let relevance = entry.relevance, entry.date <= date,
                date < entry.date + relevance.duration,
                let node = entry.drawings[Context(environment)]
            else { return nil }
            return (entry.date, node)
        }
    }

    /// How much the entry matters that is shown at `date`; 0 for one that says nothing, or no more.
    func score(at date: Date) -> Float {
        guard let index = EntrySequence(dates: entries.map(\.date)).index(at: date),
            let relevance = entries[index].relevance,
            relevance.duration <= 0 || date < entries[index].date + relevance.duration,
            relevance.score.isFinite
        else { return 0 }
        return max(0, relevance.score)
    }
}
