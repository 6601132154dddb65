import WidgetModel
import WidgetViews

/// An item that a client keeps current: the timeline of a configured widget, or the recommendation
/// set of a kind.
package enum EngineItem: Sendable, Hashable {
    /// The timeline of all widgets with this configuration; or a Live Activity, which has none and
    /// is asked for its content like one, without a budget.
    case timeline(WidgetInfo)
    case recommendations(kind: String)

    var kind: String {
        switch self {
        case .timeline(let info): info.kind
        case .recommendations(let kind): kind
        }
    }

    func isConcerned(by notification: ReloadNotification) -> Bool {
        switch self {
        case .timeline(let info) where info.activityID != nil:
            notification.all
                || notification.activities.contains {
                    $0.concerns(
                        type: info.kind, id: info.activityID ?? "", attributes: info.configuration)
                }
        case .timeline(let info):
            notification.concernsTimeline(ofKind: info.kind, info.configuration)
        case .recommendations(let kind):
            notification.all || notification.recommendations.contains(kind)
        }
    }
}

/// The state that a restart resumes. Written to the archive when the engine orders it.
package struct EngineState: Sendable, Equatable {
    package struct Position: Sendable, Equatable {
        /// The cursor up to which the item includes every change that concerns it, unless it awaits
        /// a build.
        package var cursor: Cursor
        /// Whether the item was registered at ``cursor`` and not built since, so that a restart
        /// must build it even without a notification.
        package var awaitsBuild: Bool
    }

    /// The registration the gateway accepted last, its sets without `builtAt`; `nil` when it has
    /// none.
    package var registered: ClientRegistration?
    /// The digest of that registration at the gateway; `nil` while unknown.
    package var digest: String?
    /// Whether the registration in force must be read before anything relies on it.
    package var mustReadRegistration: Bool
    /// The cursor up to which every notification for the client has been received.
    package var position: Cursor?
    package var positions: [EngineItem: Position]
    package var budgets: [WidgetInfo: ReloadBudget]

    /// Creates a state. The default is that of a client that never registered.
    package init(
        registered: ClientRegistration? = nil, digest: String? = nil,
        mustReadRegistration: Bool = false, position: Cursor? = nil,
        positions: [EngineItem: Position] = [:], budgets: [WidgetInfo: ReloadBudget] = [:]
    ) {
        self.registered = registered
        self.digest = digest
        self.mustReadRegistration = mustReadRegistration
        self.position = position
        self.positions = positions
        self.budgets = budgets
    }

    /// The lowest of all positions, including that of the notifications: the client resumes from
    /// it.
    package var cursor: Cursor? {
        (positions.values.map(\.cursor) + [position].compactMap { $0 }).min()
    }
}
