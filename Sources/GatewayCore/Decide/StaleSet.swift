import WidgetModel

/// A name for stale content in a notification.
package struct InvalidationTarget: Sendable, Hashable {
    /// The kind of content: timelines, a recommendation set, relevance, controls or activities.
    package let target: Target
    /// The widget or control kind, or the type of activities.
    package let kind: String
    /// The parameter values that restrict it, sorted by name; for timelines and activities only. A
    /// single activity is named by a parameter without a name, as no attribute has.
    package let parameters: [ReloadNotification.Parameter]

    package init(
        _ target: Target, _ kind: String, _ parameters: [ReloadNotification.Parameter] = []
    ) {
        self.target = target
        self.kind = kind
        self.parameters = parameters
    }

    /// Returns the name of a single activity.
    package static func activity(_ one: RegisteredActivity) -> InvalidationTarget {
        InvalidationTarget(.activity, one.type, [.init(name: "", value: one.id)])
    }

    /// The id of the single activity that it names; `nil` for any other name.
    package var activityID: String? {
        parameters.first.flatMap { $0.name.isEmpty ? $0.value : nil }
    }

    fileprivate func includes(_ one: RegisteredActivity) -> Bool {
        target == .activity
            && ReloadNotification.Reload(kind: kind, parameters: parameters)
                .concerns(kind: one.type, values: one.attributes)
    }
}

/// The content that is stale for a client at some cursor.
package struct StaleSet: Sendable, Hashable {
    /// Whether everything of the client is stale.
    package private(set) var all = false
    /// The names of stale content, each once, in the order found; empty if ``all`` is set.
    package private(set) var names: [InvalidationTarget] = []
    /// The latest sequence that made any of it stale.
    package private(set) var sequence: UInt64 = 0

    package init() {}

    /// Returns a set in which everything is stale as of `sequence`.
    package static func everything(at sequence: UInt64) -> StaleSet {
        var set = StaleSet()
        set.all = true
        set.sequence = sequence
        return set
    }

    package init(_ names: [InvalidationTarget], sequence: UInt64) {
        self.names = names
        self.sequence = sequence
    }

    /// Whether nothing is stale.
    package var isEmpty: Bool { !all && names.isEmpty }

    /// Records that `name` became stale at `sequence`.
    mutating func add(_ name: InvalidationTarget, at sequence: UInt64) {
        self.sequence = max(self.sequence, sequence)
        if !all, !names.contains(name) { names.append(name) }
    }

    /// Returns an equivalent set for a client with these activities: each that is stale has a name
    /// of its own, after all other content.
    func naming(_ activities: [RegisteredActivity]) -> StaleSet {
        guard !activities.isEmpty else { return self }
        var result = self
        result.names.removeAll { $0.target == .activity }
        for activity in activities where names.contains(where: { $0.includes(activity) }) {
            result.names.append(.activity(activity))
        }
        return result
    }

    /// Returns a set of bounded size that covers this one. Names with parameters become their kind
    /// if it is named as a whole, or if there are more than `entriesMax` names; more than
    /// `kindsMax` kinds become ``all``.
    func bounded(entriesMax: Int, kindsMax: Int) -> StaleSet {
        guard !names.isEmpty else { return self }
        let whole = Set(names.lazy.filter(\.parameters.isEmpty))
        var result = self
        result.names = names.filter {
            $0.parameters.isEmpty || !whole.contains(InvalidationTarget($0.target, $0.kind))
        }
        if result.names.count > entriesMax {
            var seen: Set<InvalidationTarget> = []
            result.names = names.map { InvalidationTarget($0.target, $0.kind) }
                .filter { seen.insert($0).inserted }
        }
        return result.names.count > kindsMax ? .everything(at: sequence) : result
    }
}

/// The point after which a client needs to know what became stale.
package enum ResumePoint: Sendable, Hashable {
    /// The client has no valid cursor: everything is stale.
    case everything
    /// The client has applied everything up to this sequence.
    case after(UInt64)
}
