import Foundation
import TimelineGatewayClient
import WidgetViews

/// A Live Activity of an app, beside the widgets of a bundle (article "Creating a widget
/// extension", "Add a widget target to your app"). It has no timeline: ``Activity`` starts, updates
/// and ends it.
public struct ActivityConfiguration<Attributes: ActivityAttributes>: WidgetConfiguration {
    private var activity: AnyActivityConfiguration

    /// Declares the presentations on the Lock Screen and in the Dynamic Island. The name of the
    /// attributes' type is the type in the catalog.
    public init(
        for type: Attributes.Type,
        @ViewBuilder content: @escaping @Sendable (ActivityViewContext<Attributes>) -> some View,
        dynamicIsland: @escaping @Sendable (ActivityViewContext<Attributes>) -> DynamicIsland
    ) {
        activity = AnyActivityConfiguration(
            type: "\(Attributes.self)",
            draw: { kept, isStale, environment in
                let context = try Self.context(of: kept, isStale: isStale)
                guard let presentation = environment.activityPresentation,
                    presentation != .lockScreen
                else { return environment.draw { content(context) } }
                return environment.draw { dynamicIsland(context).view(of: presentation) }
            })
    }

    /// Sets the function that fetches the content when the gateway says that it is out of date, and
    /// once when the activity is registered. The fetched content must be at least as new as the
    /// call; `nil` changes nothing. If the function fails, the extension calls it again later.
    public func contentSource(
        _ fetch:
            @escaping @Sendable (ActivityViewContext<Attributes>) async throws
            -> ActivityUpdate<Attributes.ContentState>?
    ) -> ActivityConfiguration<Attributes> {
        var configuration = self
        configuration.activity.source = { kept in
            let isStale = kept.phase(at: .now) == .stale
            guard let answer = try await fetch(Self.context(of: kept, isStale: isStale)) else {
                return nil
            }
            var changed = kept
            switch answer {
            case .update(let content): try changed.setContent(content)
            case .end(let content, let policy):
                if let content { try changed.setContent(content) }
                changed.end(policy)
            }
            return changed
        }
        return configuration
    }

    private static func context(
        of kept: KeptActivity, isStale: Bool
    ) throws -> ActivityViewContext<Attributes> {
        ActivityViewContext(
            kept.id, try kept.attributes.decoded(as: Attributes.self),
            try kept.content.decoded(as: Attributes.ContentState.self), isStale: isStale)
    }

    /// A declaration that a runtime leaves out of the widgets.
    public var declaration: AnyWidgetConfiguration {
        EmptyWidgetConfiguration().declaration.with { $0.activity = activity }
    }
}

/// The answer of a Live Activity's content source.
public enum ActivityUpdate<State: Codable & Hashable & Sendable>: Sendable {
    /// The content that it shows from now on.
    case update(ActivityContent<State>)
    /// The end, with a last content; `nil` for the one that it has.
    case end(ActivityContent<State>?, dismissalPolicy: ActivityUIDismissalPolicy = .default)
}

/// A declared Live Activity with its types erased.
struct AnyActivityConfiguration: Sendable {
    let type: String
    /// Draws the activity. Throws where its values are of another type.
    let draw: @Sendable (KeptActivity, _ isStale: Bool, WidgetEnvironment) throws -> WidgetNode
    /// Returns the activity with its content now; `nil` where there is nothing to say.
    var source: (@Sendable (KeptActivity) async throws -> KeptActivity?)?
}

extension WidgetDeclarations {
    var activityTypes: [String] { activities.keys.sorted() }

    /// Returns a timeline of each presentation of a Live Activity: as it is now, and as it is once
    /// its content is out of date. Throws when the app does not declare the activity, its values
    /// are of another type, or a button cannot work.
    func drawings(
        of activity: KeptActivity, on device: WidgetDevice?
    ) throws -> [TimelineArchive] {
        guard let declaration = activities[activity.type] else {
            throw WidgetFailure(
                description: "the app declares no Live Activity of the type \(activity.type)")
        }
        // Of entries with one date, the last counts.
        let begun = min(activity.begun, activity.staleDate ?? activity.begun)
        var entries = [ActivityEntry(date: begun, isStale: false)]
        if let date = activity.staleDate { entries.append(.init(date: date, isStale: true)) }
        let timeline = AnyTimeline(entries: entries, reloadDate: nil)
        return try ActivityPresentation.allCases.map { activity.widget(in: $0) }.map { widget in
            try TimelineArchive(
                timeline, of: widget,
                for: device.map {
                    rules.drawnEnvironments(of: widget, with: WidgetTraits(), on: $0)
                } ?? []
            ) { entry, context in
                let isStale = (entry as? ActivityEntry)?.isStale ?? false
                return try noting { try declaration.draw(activity, isStale, context) }
            }
        }
    }
}

private struct ActivityEntry: TimelineEntry {
    let date: Date
    let isStale: Bool
}
