import CatalogModel
import WidgetModel

/// Decides log entries in sequence order: as they are written, and again on replay, with the same
/// result.
package struct Decider: Sendable {
    /// The rule set in force for each app.
    package private(set) var ruleSets: [String: RuleSet] = [:]
    private let hash: SipHash
    private let limits: Limits

    package init(hash: SipHash, limits: Limits) {
        self.hash = hash
        self.limits = limits
    }

    /// Puts a catalog in force as of `sequence`.
    @discardableResult
    package mutating func install(_ catalog: Catalog, at sequence: UInt64) -> RuleSet {
        let ruleSet = RuleSet(
            catalog, sequence: sequence, replacing: ruleSets[catalog.app], hash: hash)
        ruleSets[catalog.app] = ruleSet
        return ruleSet
    }

    /// Puts a compiled catalog in force as of `sequence`, replacing the catalog that it was
    /// compiled to replace.
    package mutating func install(_ ruleSet: RuleSet, at sequence: UInt64) {
        ruleSet.comeIntoForce(at: sequence)
        ruleSets[ruleSet.catalog.app] = ruleSet
    }

    /// Removes an app. Later changes of it match nothing, and its next catalog counts as its first.
    package mutating func remove(app: String) {
        ruleSets[app] = nil
    }

    /// Decides a change of `app` by the catalog in force; without a catalog it matches nothing.
    ///
    /// - Throws: ``RuleSet/TooManyKeys``.
    package func decide(
        _ change: Change, app: String
    ) throws(RuleSet.TooManyKeys) -> RuleSet.Decision {
        try ruleSets[app]?.decide(change, limits: limits) ?? RuleSet.Decision()
    }

    /// Decides a change that was accepted before, possibly by another version or under other
    /// limits.
    ///
    /// The memory that a replay needs for one change must be bounded. A change that bumps more keys
    /// than `limits.changeKeysMax` counts as a reload of everything of its app: this reloads more
    /// than necessary and misses no client. The limit for one rule is not applied, because those
    /// keys are few.
    package func replay(_ change: Change, app: String, cause: ChangeCause?) -> LogEntry.Body {
        var limits = limits
        limits.changeRuleKeysMax = .max
        guard let ruleSet = ruleSets[app] else {
            return .change(RuleSet.Decision(), cause: cause)
        }
        do throws(RuleSet.TooManyKeys) {
            return .change(try ruleSet.decide(change, limits: limits), cause: cause)
        } catch {
            return .reload(.everything)
        }
    }
}
