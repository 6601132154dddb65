/// What a rule set knows of one kind. Immutable, and a class so that handing it on copies nothing.
final class KindRules: Sendable {
    /// The kind.
    let kind: String
    /// What a change to one of its widgets makes stale.
    let target: Target
    /// When it was first declared, without interruption since.
    var since: UInt64 { declared.sequence }
    /// The catalog that first declared it.
    let declared: CatalogPosition
    /// The slots of its rules, those of rules that earlier catalogs had last.
    let slots: [Int]
    /// How many of ``slots`` are rules in force.
    let slotsInForce: Int
    /// When it, or the newest rule of its timelines, was declared.
    var newestTimelines: UInt64 { Self.newest(timelines) }
    /// When it, or the newest rule of its recommendation set, was declared.
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
