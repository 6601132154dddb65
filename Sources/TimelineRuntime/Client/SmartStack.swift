import Foundation
import WidgetViews

/// A widget in a Smart Stack.
public struct SmartStackCard: Sendable, Equatable {
    /// The widget. A relevance widget, which is not placed by a person, may have several cards.
    public var widget: WidgetInfo
    /// The content of the card.
    public var node: WidgetNode
    /// Whether the card is present, or placed higher, because it is relevant now.
    public var isRelevant: Bool
}

extension TimelineClient {
    /// Returns the cards of a Smart Stack at `date`, the most relevant first and otherwise in the
    /// order in which widgets were placed (Apple, Increasing the visibility of widgets in Smart
    /// Stacks):
    /// - on a watch: relevance widgets, one card for each relevant entry, replacing the widgets of
    ///   their associated kind; then widgets whose providers report that they are relevant; then
    ///   the others;
    /// - on iPhone and iPad: by the score of the current entry; an entry with a score of 0 or less,
    ///   or whose duration has passed, is not relevant.
    ///
    /// Empty on platforms without Smart Stacks. Relevance widgets whose content the lock hides are
    /// left out; placed widgets show their placeholder instead.
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
            guard let traits = declared.traits(ofKind: widget.kind),
                let environment = try? declared.rules.environment(
                    of: widget, with: traits, at: location, on: device, state: state)
            else { continue }
            guard declared.isRelevance(ofKind: widget.kind) else {
                guard let node = shown(widget, at: date, in: environment)?.node else { continue }
                let score = score(of: widget, at: date)
                unsorted.append(
                    (.init(widget: widget, node: node, isRelevant: score > 0), score))
                continue
            }
            guard !environment.redactionReasons.contains(.placeholder) else { continue }
            let relevant = timelines[widget]?.relevant(at: date, in: environment) ?? []
            // A relevance widget is in the stack only while it is relevant.
            unsorted += relevant.map {
                (.init(widget: widget, node: $0.node, isRelevant: true), .infinity)
            }
            if !relevant.isEmpty, let kind = declared.associatedKind(ofKind: widget.kind) {
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
        if WidgetDeclarations.heedsRelevance(configuration.device) {
            let isRelevant = relevance[widget.kind, default: []].contains {
                $0.context.contains(date) && $0.isConfiguration(of: widget)
            }
            return isRelevant ? 1 : 0
        }
        return timelines[widget]?.score(at: date) ?? 0
    }

    /// Asks the provider of a placeable kind for its relevance. When several requests overlap, the
    /// answer to the latest one counts; if it does not arrive in time, the previous relevance
    /// stays.
    func askForRelevance(ofKind kind: String) async {
        let number = relevanceQuestions[kind, default: 0] + 1
        relevanceQuestions[kind] = number
        let answer = try? await Deadline.run(configuration.buildDeadline) { [declared] in
            await declared.relevance(ofKind: kind)
        }
        guard let answer, relevanceQuestions[kind] == number else { return }
        relevance[kind] = answer
    }

    /// Marks the relevance of a kind as stale and asks its provider again. For a relevance widget,
    /// whose relevance is in its entries, this requests a reload that counts towards its budget.
    func invalidateRelevance(ofKind kind: String) async {
        tell(.relevanceInvalidated(kind: kind))
        if declared.isRelevance(ofKind: kind) {
            handle(.reloadRequested(.kind(kind), .app))
        } else if declared.kindsWithRelevance.contains(kind),
            WidgetDeclarations.heedsRelevance(configuration.device)
        {
            await askForRelevance(ofKind: kind)
        }
    }

    /// Returns the placed widgets followed by the relevance widgets, which people do not place.
    static func completed(
        _ widgets: [WidgetInfo], _ declared: WidgetDeclarations, on device: WidgetDevice?
    ) -> [WidgetInfo] {
        widgets.filter { !declared.isRelevance(ofKind: $0.kind) }
            + declared.relevanceWidgets(on: device)
    }
}

extension TimelineArchive {
    /// Returns the content of each entry that is relevant at `date`, with the start of its
    /// relevance. For relevance widgets.
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

    /// Returns the score of the entry shown at `date`; 0 when it has no relevance or its duration
    /// has passed.
    func score(at date: Date) -> Float {
        guard let index = EntrySequence(dates: entries.map(\.date)).index(at: date),
            let relevance = entries[index].relevance,
            relevance.duration <= 0 || date < entries[index].date + relevance.duration,
            relevance.score.isFinite
        else { return 0 }
        return max(0, relevance.score)
    }
}
