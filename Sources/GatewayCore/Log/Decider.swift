import WidgetModel

/// Decides log entries in sequence order: live as they are written, and again on replay, with the
/// same result.
package struct Decider: Sendable {
    /// The rule set in force for each app.
    package private(set) var ruleSets = NameTable<RuleSet>()
    private let hash: SipHash
    private let limits: Limits

    /// Decides with keys hashed under `hash`.
    package init(hash: SipHash, limits: Limits) {
        self.hash = hash
        self.limits = limits
    }

    /// Puts a catalog in force as of `sequence`.
    @discardableResult
    package mutating func install(_ catalog: Catalog, at sequence: UInt64) -> RuleSet {
        let ruleSet = RuleSet(
            catalog, sequence: sequence, replacing: ruleSets[catalog.app], hash: hash)
        ruleSets.set(catalog.app, ruleSet)
        return ruleSet
    }

    /// Puts a compiled catalog in force as of `sequence`, in place of the one it was compiled to
    /// replace.
    package mutating func install(_ ruleSet: RuleSet, at sequence: UInt64) {
        ruleSet.comeIntoForce(at: sequence)
        ruleSets.set(ruleSet.catalog.app, ruleSet)
    }

    /// An app is gone: what comes after hits nothing, and its next catalog is its first.
    package mutating func remove(app: String) {
        ruleSets.remove(app)
    }

    /// Decides a change of `app` by the catalog in force; one without a catalog hits nothing.
    ///
    /// - Throws: ``RuleSet/TooManyKeys``.
    package func decide(
        _ change: Change, app: String
    ) throws(RuleSet.TooManyKeys) -> RuleSet.Decision {
        try ruleSets[app]?.decide(change, limits: limits) ?? RuleSet.Decision()
    }

    /// Decides a change that was accepted before, maybe by another version or under other limits.
    ///
    /// What a replay keeps of one change must not take memory without bound. A change that raises more
    /// keys than `limits.changeKeysMax` counts as a reload of everything of its app: that reloads more
    /// than necessary and misses no client. The limit for one rule does not apply: those keys are
    /// few.
    package func replay(_ change: Change, app: String, causeTime: String?) -> LogEntry.Body {
        var limits = limits
        limits.changeRuleKeysMax = .max
        guard let ruleSet = ruleSets[app] else {
            return .change(RuleSet.Decision(), causeTime: causeTime)
        }
        do throws(RuleSet.TooManyKeys) {
            return .change(try ruleSet.decide(change, limits: limits), causeTime: causeTime)
        } catch {
            return .reload(.everything)
        }
    }
}
