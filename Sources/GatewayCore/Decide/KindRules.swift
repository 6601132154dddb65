/// What a rule set knows of one kind. Immutable, and a class so that handing it on copies nothing.
final class KindRules: Sendable {
    /// The kind.
    let kind: String
    /// What a change to one of its widgets makes stale.
    let target: Target
    /// When it was first declared, without interruption since.
    let since: UInt64
    /// The slots of its rules, those of rules that earlier catalogs had last.
    let slots: [Int]
    /// How many of ``slots`` are rules in force.
    let slotsInForce: Int
    /// When it, or the newest rule of its timelines, was declared.
    let newestTimelines: UInt64
    /// When it, or the newest rule of its recommendation set, was declared.
    let newestSet: UInt64
    /// The key that all its widgets depend on, for operator reloads.
    let operatorKey: UInt64

    init(
        kind: String, target: Target, since: UInt64, slots: [Int], retired: [Int],
        operatorKey: UInt64, rule: (Int) -> Rule
    ) {
        self.kind = kind
        self.target = target
        self.since = since
        self.slots = slots + retired
        slotsInForce = slots.count
        self.operatorKey = operatorKey
        func newest(isSet: Bool) -> UInt64 {
            (slots + retired).lazy.map(rule).filter { ($0.target == .recommendations) == isSet }
                .reduce(since) { max($0, $1.since) }
        }
        newestTimelines = newest(isSet: false)
        newestSet = newest(isSet: true)
    }
}
