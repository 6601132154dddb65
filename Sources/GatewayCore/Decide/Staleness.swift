import WidgetModel

/// Answers the one question everything follows from: a configured widget is stale exactly when
/// the highest version of its keys is above the cursor.
package struct Staleness {
    let ruleSet: RuleSet
    let versions: VersionWindow
    let limits: CoreLimits

    /// What is stale since `point` for a client that holds `holdings`, in a bounded number of
    /// words.
    ///
    /// Costs the client's own keys, never the changes missed.
    ///
    /// - Parameters:
    ///   - isNarrowed: Whether the holdings are those of some kinds only.
    ///   - confirmed: Up to where each recommendation set is known to be built, to say those
    ///     again that were said before and not acknowledged, as at every resume and poll; `nil`
    ///     to not say them again.
    func stale(
        for holdings: Holdings, since point: ResumePoint, isNarrowed: Bool,
        confirmed: [String: UInt64]?, at head: UInt64
    ) -> StaleSet {
        guard !holdings.isEmpty else { return StaleSet() }
        guard case .after(let cursor) = point, cursor >= versions.floor,
            versions.version(of: ruleSet.operatorKey) <= cursor,
            versions.version(of: holdings.operatorKey) <= cursor
        else { return everything(holdings, isNarrowed, at: head) }
        // A recommendation set is owed until it was acknowledged or registered with the cursor it
        // was built at, whatever cursor a stream resumes from.
        func bound(ofSet kind: String) -> UInt64 {
            min(cursor, confirmed?[kind] ?? cursor)
        }
        var result = StaleSet()
        // A rule or kind newer than the cursor was not watched when the client built.
        for (kind, sequence) in Self.sorted(
            holdings.kinds,
            {
                let sequence = max($0.newestTimelines, versions.version(of: $0.operatorKey))
                return sequence > cursor ? sequence : nil
            })
        {
            result.add(StaleName(kind.target, kind.kind), at: sequence)
        }
        for (kind, sequence) in Self.sorted(
            holdings.sets,
            {
                let bound = bound(ofSet: $0.kind)
                return $0.newestSet > bound ? $0.newestSet : bound < versions.floor ? head : nil
            })
        {
            result.add(StaleName(.recommendations, kind.kind), at: sequence)
        }
        for dependency in holdings.dependencies {
            let rule = ruleSet.rule(dependency.rule)
            var version: UInt64 = 0
            rule.visitHashes(reaching: dependency.values) {
                version = max(version, versions.version(of: $0))
            }
            let isSet = rule.target == .recommendations
            if version > (isSet ? bound(ofSet: rule.kind) : cursor) {
                result.add(rule.name(of: dependency.values), at: version)
            }
        }
        return result.bounded(entriesMax: limits.entriesMax, kindsMax: limits.kindsMax)
    }

    /// The kinds that are stale, by name, and since when.
    private static func sorted(
        _ kinds: [KindRules], _ staleSince: (KindRules) -> UInt64?
    ) -> [(KindRules, UInt64)] {
        var stale: [(KindRules, UInt64)] = []
        for kind in kinds {
            if let sequence = staleSince(kind) { stale.append((kind, sequence)) }
        }
        if stale.count > 1 { stale.sort { $0.0.kind < $1.0.kind } }
        return stale
    }

    private func everything(
        _ holdings: Holdings, _ isNarrowed: Bool, at head: UInt64
    ) -> StaleSet {
        // A narrowed question gets a narrowed answer: `all` would speak of other kinds too.
        guard isNarrowed else { return .everything(at: head) }
        var result = StaleSet()
        for (kind, _) in Self.sorted(holdings.kinds, { _ in head }) {
            result.add(StaleName(kind.target, kind.kind), at: head)
        }
        for (kind, _) in Self.sorted(holdings.sets, { _ in head }) {
            result.add(StaleName(.recommendations, kind.kind), at: head)
        }
        return result.bounded(entriesMax: limits.entriesMax, kindsMax: limits.kindsMax)
    }
}

/// The core's own bounds; what peers may send is bounded by `Limits`.
package struct CoreLimits: Sendable, Equatable {
    /// Keys whose versions are remembered, per app and shard (16 bytes each, and up to twice that
    /// for the table). Beyond it the oldest are forgotten and their clients told everything.
    package var versionKeysMax = 1_000_000
    /// A catch-up with more entries names kinds only.
    package var entriesMax = 64
    /// A catch-up with more kinds says that everything is stale.
    package var kindsMax = 48
    /// Open collapse windows, per app and shard. Keys beyond it are not collapsed.
    package var collapseKeysMax = 100_000

    /// The defaults.
    package init() {}
}
