import WidgetModel

/// What a notification calls one stale thing.
package struct StaleName: Sendable, Hashable {
    /// Timelines, a recommendation set, relevance or controls.
    package let target: Target
    /// The kind.
    package let kind: String
    /// Parameter values that narrow it, names sorted; timelines only.
    package let parameters: [ReloadNotification.Parameter]

    /// A name.
    package init(
        _ target: Target, _ kind: String, _ parameters: [ReloadNotification.Parameter] = []
    ) {
        self.target = target
        self.kind = kind
        self.parameters = parameters
    }
}

/// What is stale for a client at some cursor.
package struct StaleSet: Sendable, Hashable {
    /// Everything of the client is.
    package private(set) var all = false
    /// What is, each once, in the order found; empty with ``all``.
    package private(set) var names: [StaleName] = []
    /// The latest sequence that made any of it stale.
    package private(set) var sequence: UInt64 = 0

    /// Nothing is stale.
    package init() {}

    /// Everything is stale as of `sequence`.
    package static func everything(at sequence: UInt64) -> StaleSet {
        var set = StaleSet()
        set.all = true
        set.sequence = sequence
        return set
    }

    /// These names are stale as of `sequence`.
    package init(_ names: [StaleName], sequence: UInt64) {
        self.names = names
        self.sequence = sequence
    }

    /// Whether nothing is stale.
    package var isEmpty: Bool { !all && names.isEmpty }

    /// Notes that `name` became stale at `sequence`.
    mutating func add(_ name: StaleName, at sequence: UInt64) {
        self.sequence = max(self.sequence, sequence)
        if !all, !names.contains(name) { names.append(name) }
    }

    /// The same statement in a bounded number of words: narrowed names give way to their kind
    /// where the kind is named as a whole, or everywhere above `entriesMax`; above `kindsMax` it
    /// says that everything is stale.
    func bounded(entriesMax: Int, kindsMax: Int) -> StaleSet {
        guard !names.isEmpty else { return self }
        let whole = Set(names.lazy.filter(\.parameters.isEmpty))
        var result = self
        result.names = names.filter {
            $0.parameters.isEmpty || !whole.contains(StaleName($0.target, $0.kind))
        }
        if result.names.count > entriesMax {
            var seen: Set<StaleName> = []
            result.names = names.map { StaleName($0.target, $0.kind) }
                .filter { seen.insert($0).inserted }
        }
        return result.names.count > kindsMax ? .everything(at: sequence) : result
    }
}

/// From where a client wants to know what became stale.
package enum ResumePoint: Sendable, Hashable {
    /// It has no cursor, or none that holds: everything is stale.
    case everything
    /// It has applied everything up to this sequence.
    case after(UInt64)
}
