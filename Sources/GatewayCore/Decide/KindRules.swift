/// The rules of one kind in a rule set. Immutable, and a class so that passing it on copies
/// nothing.
package final class KindRules: Sendable {
    let kind: String
    /// The content that a change to one of its widgets makes stale.
    package let target: Target
    /// The sequence at which the kind was first declared, without interruption since.
    var since: UInt64 { declared.sequence }
    /// The catalog that first declared it.
    let declared: CatalogPosition
    /// The slots of its rules; those of rules retired from earlier catalogs come last.
    package let slots: [Int]
    /// The number of ``slots`` with rules in force.
    package let slotsInForce: Int
    /// The sequence at which the kind, or the newest rule of its timelines, was declared.
    var newestTimelines: UInt64 { Self.newest(timelines) }
    /// The sequence at which the kind, or the newest rule of its recommendation set, was declared.
    var newestSet: UInt64 { Self.newest(set) }
    /// The key that all its widgets depend on, for operator reloads.
    let operatorKey: UInt64
    /// The catalogs that declared it or a rule of its timelines, each once.
    private let timelines: [CatalogPosition]
    /// The catalogs that declared it or a rule of its recommendation set, each once.
    private let set: [CatalogPosition]

    init(
        kind: String, target: Target, declared: CatalogPosition, slots: [Int], retired: [Int],
        operatorKey: UInt64, rule: (Int) -> Rule
    ) {
        self.kind = kind
        self.target = target
        self.declared = declared
        self.slots = slots + retired
        slotsInForce = slots.count
        self.operatorKey = operatorKey
        func catalogs(isSet: Bool) -> [CatalogPosition] {
            var catalogs = [declared]
            for rule in (slots + retired).lazy.map(rule)
            where (rule.target == .recommendations) == isSet {
                if catalogs.last !== rule.declared { catalogs.append(rule.declared) }
            }
            var seen: Set<ObjectIdentifier> = []
            return catalogs.filter { seen.insert(ObjectIdentifier($0)).inserted }
        }
        timelines = catalogs(isSet: false)
        set = catalogs(isSet: true)
    }

    private static func newest(_ catalogs: [CatalogPosition]) -> UInt64 {
        catalogs.reduce(0) { max($0, $1.sequence) }
    }
}
