import WidgetModel

/// What one client keeps current: the timeline of a configured widget, or the recommendation set
/// of a kind.
package enum Archived: Sendable, Hashable {
    /// The timeline of all widgets configured like this.
    case timeline(WidgetInfo)
    /// The recommendation set of this kind.
    case recommendations(kind: String)

    /// The widget kind it belongs to.
    var kind: String {
        switch self {
        case .timeline(let info): info.kind
        case .recommendations(let kind): kind
        }
    }

    /// Whether a notification concerns it.
    func isConcerned(by notification: ReloadNotification) -> Bool {
        if notification.all { return true }
        switch self {
        case .timeline(let info):
            // Of a relevance widget, whose kind is told alone, the timeline is what is relevant.
            return notification.relevance.contains(info.kind)
                || notification.reload.contains {
                    $0.concerns(kind: info.kind, values: info.configuration)
                }
        case .recommendations(let kind):
            return notification.recommendations.contains(kind)
        }
    }
}

/// What a restart needs to resume: written to the archive whenever the engine asks for it.
package struct EngineState: Sendable, Equatable {
    /// How far one archived thing is applied.
    package struct Position: Sendable, Equatable {
        /// Everything up to here that concerns it is in it, or it awaits a build.
        package var cursor: Cursor
        /// It was registered at ``cursor`` and has not been built since, so that a restart has to
        /// build it whatever the gateway says.
        package var awaitsBuild: Bool

        /// A position.
        package init(cursor: Cursor, awaitsBuild: Bool) {
            self.cursor = cursor
            self.awaitsBuild = awaitsBuild
        }
    }

    /// The registration the gateway last took, its sets without `builtAt`; `nil` when it has none.
    package var registered: ClientRegistration?
    /// The digest that the gateway gave it; `nil` while that is not known.
    package var digest: String?
    /// Whether the registration in force has to be read before anything relies on it.
    package var mustReadRegistration: Bool
    /// Everything up to here that concerns the client was handed in.
    package var position: Cursor?
    /// Positions of what is registered.
    package var positions: [Archived: Position]
    /// What each placed widget has spent.
    package var budgets: [WidgetInfo: ReloadBudget]

    /// A client that never registered.
    package init(
        registered: ClientRegistration? = nil, digest: String? = nil,
        mustReadRegistration: Bool = false, position: Cursor? = nil,
        positions: [Archived: Position] = [:], budgets: [WidgetInfo: ReloadBudget] = [:]
    ) {
        self.registered = registered
        self.digest = digest
        self.mustReadRegistration = mustReadRegistration
        self.position = position
        self.positions = positions
        self.budgets = budgets
    }

    /// The lowest of all positions, and of what was heard: what the client as a whole resumes from.
    package var cursor: Cursor? {
        (positions.values.map(\.cursor) + [position].compactMap { $0 }).min()
    }
}
