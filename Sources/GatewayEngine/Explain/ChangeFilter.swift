import WidgetModel

/// The conditions that listed changes meet; `nil` for any value.
package struct ChangeFilter: Sendable, Equatable {
    package var entity: String?
    package var entityID: String?
    /// A kind that has a key which the change invalidates.
    package var kind: String?
    package var source: String?
    /// Whether only changes that match no rule are meant.
    package var isUnmatchedOnly = false

    /// Creates a filter that every change passes.
    package init() {}

    /// Whether every change passes.
    package var isEmpty: Bool { self == ChangeFilter() }

    /// Returns whether a change may pass, before it is decided. Texts are compared by their bytes.
    package func admits(_ change: Change, source: String?) -> Bool {
        Self.agrees(entity, change.entity) && Self.agrees(entityID, change.id)
            && Self.agrees(self.source, source)
    }

    /// Returns whether a change that may pass does.
    ///
    /// - Parameter kinds: The kinds that have a key which it invalidates.
    package func admits(kinds: some Sequence<String>, isUnmatched: Bool) -> Bool {
        (isUnmatched || !isUnmatchedOnly)
            && (kind.map { kind in kinds.contains { kind.hasSameBytes(as: $0) } } ?? true)
    }

    private static func agrees(_ wanted: String?, _ text: String?) -> Bool {
        guard let wanted else { return true }
        return text.map { wanted.hasSameBytes(as: $0) } ?? false
    }
}
