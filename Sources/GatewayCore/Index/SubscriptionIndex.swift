/// The live index of one app on one shard: key to the streams that depend on it.
///
/// It compares real values, so that a notification which names them reaches nobody by a collision.
struct SubscriptionIndex {
    /// A stream's registration in force; ends with the generation.
    struct Holder {
        let stream: UInt32
        let generation: UInt32
    }

    /// The holders of one key. Those whose generation ended are dead; they are swept when they are
    /// the majority, so that ending one costs nothing and a long list is never searched.
    private struct HolderList {
        var holders: [Holder] = []
        var dead = 0
    }

    private var rules: [[BoundValues: HolderList]]

    /// An index for a rule set with `ruleCount` slots.
    init(ruleCount: Int) {
        rules = Array(repeating: [:], count: ruleCount)
    }

    /// Whether any stream depends on what a raised key reaches.
    func isHeld(rule: Int, values: BoundValues) -> Bool {
        values.isBroad
            ? rules[rule].keys.contains { $0.agrees(withBroad: values) }
            : rules[rule][values] != nil
    }

    mutating func insert(_ holder: Holder, rule: Int, values: BoundValues) {
        rules[rule][values, default: HolderList()].holders.append(holder)
    }

    /// Notes that one holder of the key ended; `isAlive` tells which of the others did not.
    mutating func end(rule: Int, values: BoundValues, isAlive: (Holder) -> Bool) {
        guard let place = rules[rule].index(forKey: values) else { return }
        rules[rule].values[place].dead += 1
        let list = rules[rule].values[place]
        if list.dead >= list.holders.count {
            rules[rule].remove(at: place)
        } else if list.dead > 8, list.dead * 2 > list.holders.count {
            rules[rule].values[place].holders.removeAll { !isAlive($0) }
            rules[rule].values[place].dead = 0
        }
    }

    /// Calls `body` with every holder, dead ones included, that a raised key reaches.
    func visitHolders(rule: Int, values: BoundValues, _ body: (Holder) -> Void) {
        if values.isBroad {
            // A broad key agrees with many exact ones. Such changes are rare and reach a good
            // part of the rule's holders, so one walk over the rule's keys is their right price.
            for (key, list) in rules[rule] where key.agrees(withBroad: values) {
                for holder in list.holders { body(holder) }
            }
        } else if let list = rules[rule][values] {
            for holder in list.holders { body(holder) }
        }
    }
}
