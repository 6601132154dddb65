import WidgetModel

/// Answers the one question everything follows from: a configured widget is stale exactly when
/// the highest version of its keys is above the cursor.
package struct Staleness {
    let ruleSet: RuleSet
    let versions: VersionWindow
    let limits: CoreLimits

    /// What is stale for `record` since `point`, in a bounded number of words.
    ///
    /// Costs the client's own keys, never the changes missed.
    ///
    /// - Parameter includingOwed: Whether recommendation sets that were said before and not
    ///   acknowledged are said again, as at every resume and poll.
    func stale(
        for record: ClientRecord, since point: ResumePoint, kinds: Set<String>?,
        includingOwed: Bool, at head: UInt64
    ) -> StaleSet {
        let heldKinds = ruleSet.heldKinds(of: record, kinds: kinds)
        let heldSets = ruleSet.heldSets(of: record, kinds: kinds)
        guard !heldKinds.isEmpty || !heldSets.isEmpty else { return StaleSet() }
        guard case .after(let cursor) = point, cursor >= versions.floor,
            versions.version(of: ruleSet.operatorKey) <= cursor
        else { return everything(heldKinds, heldSets, kinds, at: head) }
        var result = StaleSet()
        for kind in heldKinds.sorted() {
            guard let target = ruleSet.target(ofKind: kind) else { continue }
            // A rule or kind newer than the cursor was not watched when the client built.
            let newest = newest(ofKind: kind, isSet: false)
            let reloaded = versions.version(of: ruleSet.operatorKey(kind: kind))
            if max(newest, reloaded) > cursor {
                result.add(StaleName(target, kind), at: max(newest, reloaded))
            }
        }
        for kind in heldSets.sorted() {
            let newest = newest(ofKind: kind, isSet: true)
            let bound = includingOwed ? owedAbove(cursor, kind, record) : cursor
            if newest > bound {
                result.add(StaleName(.recommendations, kind), at: newest)
            } else if bound < versions.floor {
                result.add(StaleName(.recommendations, kind), at: head)
            }
        }
        for dependency in ruleSet.dependencies(
            of: record, kinds: kinds, includingRetired: true)
        {
            let rule = ruleSet.rule(dependency.rule)
            let isOwed = includingOwed && rule.target == .recommendations
            let bound = isOwed ? owedAbove(cursor, rule.kind, record) : cursor
            let version = rule.hashes(reaching: dependency.positions)
                .reduce(0) { max($0, versions.version(of: $1)) }
            if version > bound { result.add(rule.name(of: dependency.positions), at: version) }
        }
        return result.bounded(entriesMax: limits.entriesMax, kindsMax: limits.kindsMax)
    }

    /// When the kind, or the newest rule of its timelines or of its set, was declared.
    private func newest(ofKind kind: String, isSet: Bool) -> UInt64 {
        (ruleSet.slots(ofKind: kind) + ruleSet.retiredSlots(ofKind: kind))
            .lazy.map(ruleSet.rule).filter { ($0.target == .recommendations) == isSet }
            .reduce(ruleSet.since(kind: kind) ?? 0) { max($0, $1.since) }
    }

    /// A recommendation set is owed until it was acknowledged or registered with the cursor it
    /// was built at, whatever cursor a stream resumes from.
    private func owedAbove(_ cursor: UInt64, _ kind: String, _ record: ClientRecord) -> UInt64 {
        min(cursor, record.confirmed[kind] ?? cursor)
    }

    private func everything(
        _ heldKinds: Set<String>, _ heldSets: Set<String>, _ kinds: Set<String>?, at head: UInt64
    ) -> StaleSet {
        // A narrowed question gets a narrowed answer: `all` would speak of other kinds too.
        guard kinds != nil else { return .everything(at: head) }
        var result = StaleSet()
        for kind in heldKinds.sorted() {
            guard let target = ruleSet.target(ofKind: kind) else { continue }
            result.add(StaleName(target, kind), at: head)
        }
        for kind in heldSets.sorted() {
            result.add(StaleName(.recommendations, kind), at: head)
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
