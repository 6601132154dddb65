/// Which recommendation sets a client is owed. A set is owed from the change that made it stale
/// until it was acknowledged, or registered, with a cursor it was built at that covers the change;
/// no other acknowledgement and no resumed cursor pays for it.
package struct OwedSets: Sendable, Hashable {
    /// One set, as it is persisted.
    package struct Entry: Sendable, Hashable {
        /// A hash of the kind's name, equal after a restart.
        package let kind: UInt64
        /// The latest change that made it stale.
        package fileprivate(set) var changed: UInt64
        /// The cursor it is known to be built at.
        package fileprivate(set) var built: UInt64

        /// What was persisted.
        package init(kind: UInt64, changed: UInt64, built: UInt64) {
            self.kind = kind
            self.changed = changed
            self.built = built
        }

        /// Whether the client is owed it.
        package var isOwed: Bool { changed > built }
    }

    /// The sets the client offers, in the order registered.
    package private(set) var entries: [Entry]

    /// The sets that were persisted.
    package init(_ entries: [Entry] = []) {
        self.entries = entries
    }

    /// The kinds that are owed.
    package var owed: [UInt64] { entries.filter(\.isOwed).map(\.kind) }

    /// The latest change that made a set stale that is owed; 0 when none is.
    package var latest: UInt64 { entries.lazy.filter(\.isOwed).map(\.changed).max() ?? 0 }

    /// The client registered these sets, each kind once. Kinds it had before stay owed.
    ///
    /// - Parameters:
    ///   - sets: Each with the cursor it says it was built at.
    ///   - sequence: The position of the registration, at which a set that is new and does not
    ///     say it counts as built.
    package mutating func register(_ sets: [(kind: UInt64, builtAt: UInt64?)], at sequence: UInt64)
    {
        entries = sets.map { set in
            guard var entry = entries.first(where: { $0.kind == set.kind }) else {
                return Entry(kind: set.kind, changed: 0, built: set.builtAt ?? sequence)
            }
            entry.built = max(entry.built, set.builtAt ?? 0)
            return entry
        }
    }

    /// A change made a set stale. Returns whether the client offers it and is owed it now.
    package mutating func changed(_ kind: UInt64, at sequence: UInt64) -> Bool {
        guard let index = entries.firstIndex(where: { $0.kind == kind }) else { return false }
        entries[index].changed = max(entries[index].changed, sequence)
        return entries[index].isOwed
    }

    /// A set was built at a cursor. Returns whether nothing is owed any more.
    package mutating func confirmed(_ kind: UInt64, builtAt cursor: UInt64) -> Bool {
        if let index = entries.firstIndex(where: { $0.kind == kind }) {
            entries[index].built = max(entries[index].built, cursor)
        }
        return latest == 0
    }
}
