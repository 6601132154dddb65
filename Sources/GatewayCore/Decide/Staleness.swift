/// Decides staleness: a configured widget is stale exactly when the highest version of its keys is
/// above the cursor.
package struct Staleness {
    let ruleSet: RuleSet
    let versions: VersionWindow
    let limits: CoreLimits

    /// Returns a bounded description of the content that became stale since `point` for a client
    /// with these subscriptions.
    ///
    /// Costs time linear in the client's own keys, whatever the number of missed changes.
    ///
    /// - Parameters:
    ///   - isNarrowed: Whether the subscriptions are limited to some kinds.
    ///   - confirmed: The sequences up to which recommendation sets are known to be built. With
    ///     these, sets that were notified but not acknowledged are repeated, as at every resume and
    ///     poll; `nil` does not repeat them.
    func stale(
        for holdings: ClientSubscriptions, since point: ResumePoint, isNarrowed: Bool,
        confirmed: [String: UInt64]?, at head: UInt64
    ) -> StaleSet {
        guard !holdings.isEmpty else { return StaleSet() }
        guard case .after(let cursor) = point, cursor >= versions.floor,
            versions.version(of: ruleSet.operatorKey) <= cursor,
            versions.version(of: holdings.operatorKey) <= cursor
        else { return everything(holdings, isNarrowed, at: head) }
        // A recommendation set is owed until it was acknowledged, or registered with the cursor at
        // which it was built, whatever cursor a stream resumes at.
        func bound(ofSet kind: String) -> UInt64 {
            min(cursor, confirmed?[kind] ?? cursor)
        }
        var result = StaleSet()
        // A rule or kind newer than the cursor was not in effect when the client built.
        for (kind, sequence) in Self.sorted(
            holdings.kinds,
            {
                let sequence = max($0.newestTimelines, versions.version(of: $0.operatorKey))
                return sequence > cursor ? sequence : nil
            })
        {
            result.add(InvalidationTarget(kind.target, kind.kind), at: sequence)
        }
        for (kind, sequence) in Self.sorted(
            holdings.sets,
            {
                // Below the floor a change may have been forgotten, which is not a new one.
                let newest = max($0.newestSet, versions.floor)
                return newest > bound(ofSet: $0.kind) ? newest : nil
            })
        {
            result.add(InvalidationTarget(.recommendations, kind.kind), at: sequence)
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
        return result.naming(holdings.activities)
            .bounded(entriesMax: limits.entriesMax, kindsMax: limits.kindsMax)
    }

    /// Returns the stale kinds sorted by name, each with the sequence that made it stale.
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
        _ holdings: ClientSubscriptions, _ isNarrowed: Bool, at head: UInt64
    ) -> StaleSet {
        // A restricted request needs a restricted response: `all` would include other kinds.
        guard isNarrowed else { return .everything(at: head) }
        var result = StaleSet()
        for (kind, _) in Self.sorted(holdings.kinds, { _ in head }) {
            result.add(InvalidationTarget(kind.target, kind.kind), at: head)
        }
        for (kind, _) in Self.sorted(holdings.sets, { _ in head }) {
            result.add(InvalidationTarget(.recommendations, kind.kind), at: head)
        }
        return result.naming(holdings.activities)
            .bounded(entriesMax: limits.entriesMax, kindsMax: limits.kindsMax)
    }
}

/// The internal limits of the core; `Limits` restricts input from peers.
package struct CoreLimits: Sendable, Equatable {
    /// The maximum number of keys with stored versions, per app (20 bytes each). Beyond it the
    /// oldest are removed, and their clients are notified of everything.
    package var versionKeysMax = 1_000_000
    /// The number of keys that each shard stores itself, per app, until they are sealed for all
    /// shards.
    package var versionRunKeys = VersionWindow.runKeysDefault
    /// The maximum number of entries in a catch-up; beyond it only kinds are named.
    package var entriesMax = 64
    /// The maximum number of kinds in a catch-up; beyond it everything is reported as stale.
    package var kindsMax = 48
    /// The maximum number of open collapse windows, per app and shard; other keys do not collapse.
    package var collapseKeysMax = 100_000

    package init() {}
}
