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
        /// Most keys have one holder: it needs no heap object.
        var first: Holder
        var others: [Holder] = []
        var dead: UInt32 = 0

        static let none = HolderList(first: Holder(stream: 0, generation: 0))

        var count: Int { others.count + 1 }

        mutating func sweep(_ isAlive: (Holder) -> Bool) {
            others.removeAll { !isAlive($0) }
            if !isAlive(first), let last = others.popLast() { first = last }
            dead = 0
        }
    }

    private struct RuleIndex {
        var keys = KeyTable<HolderList>()
        /// For broad changes, by which attributes they lack: made when the first such change comes.
        var projections: [[Bool]: KeyProjection] = [:]
    }

    /// The rules themselves. They stand apart from their keys, so that none is touched while an index
    /// is made: there may be tens of thousands.
    private let declared: [Rule]
    private var rules: [RuleIndex]

    /// An index for these rules, in their order.
    init(rules: [Rule]) {
        declared = rules
        self.rules = Array(repeating: RuleIndex(), count: rules.count)
    }

    /// What a raised key reaches: some key with holders, dead ones included.
    enum Reach {
        /// The one key with its values.
        case key(Int)
        /// Those that agree with it; the key is broad.
        case broad
    }

    /// What a raised key reaches; `nil` where no stream depends on it.
    @inline(__always)
    mutating func reach(rule: Int, _ key: EncodedKey, isBroad: Bool) -> Reach? {
        #if INJECTED_COST
            // In no product: what Deploy/check-costs has to notice.
            rules[rule].projections[key.bytes.missing] = nil
        #endif
        if isBroad { return isHeld(rule: rule, broad: key.values) ? .broad : nil }
        return rules[rule].keys.find(key).map { .key($0) }
    }

    /// Asks for the memory in which the keys of a change are looked for, here and in `versions`.
    mutating func prefetch(_ keys: RaisedKeys, _ versions: VersionWindow) {
        // Sound: the buffer is used within the closure that lends it, after a bounds check.
        rules.withUnsafeMutableBufferPointer { rules in
            keys.visit { _, rule, _, key in
                if rule < rules.count { rules[rule].keys.prefetch(key.hash) }
                versions.prefetch(key.hash)
            }
        }
    }

    /// Asks for the memory of streams that hold a key.
    mutating func prefetchStreams(rule: Int, _ reach: Reach, _ streams: [StreamRecord]) {
        guard case .key(let number) = reach else { return }
        streams.prefetch(Int(rules[rule].keys[number].first.stream))
        // Sound: the buffer is read within the closure that lends it.
        rules[rule].keys[number].others.withUnsafeBufferPointer {
            for index in 0..<min($0.count, UInt64.bitWidth) {
                streams.prefetch(Int($0[index].stream))
            }
        }
    }

    /// Whether any stream depends on what a raised key reaches.
    mutating func isHeld(rule: Int, values: BoundValues) -> Bool {
        values.withEncoded { reach(rule: rule, $0, isBroad: values.isBroad) != nil }
    }

    private mutating func isHeld(rule: Int, broad values: BoundValues) -> Bool {
        let missing = values.bytes.missing
        return missing.contains(false)
            ? projection(rule, missing).isHeld(values) : !rules[rule].keys.isEmpty
    }

    mutating func insert(_ holder: Holder, rule: Int, values: BoundValues) {
        if let number = rules[rule].keys.find(values) {
            rules[rule].keys[number].others.append(holder)
            return
        }
        let number = rules[rule].keys.add(values, HolderList(first: holder))
        for missing in rules[rule].projections.keys {
            let projected = values.lacking(missing, declared[rule])
            rules[rule].projections[missing]?.add(number, projected)
        }
    }

    /// Notes that one holder of the key ended; `isAlive` tells which of the others did not.
    mutating func end(rule: Int, values: BoundValues, isAlive: (Holder) -> Bool) {
        guard let number = rules[rule].keys.find(values) else { return }
        rules[rule].keys[number].dead += 1
        let dead = Int(rules[rule].keys[number].dead)
        let count = rules[rule].keys[number].count
        if dead >= count {
            remove(number, values, rule)
        } else if dead > 8, dead * 2 > count {
            rules[rule].keys[number].sweep(isAlive)
        }
    }

    private mutating func remove(_ number: Int, _ values: BoundValues, _ rule: Int) {
        for missing in rules[rule].projections.keys {
            let projected = values.lacking(missing, declared[rule])
            rules[rule].projections[missing]?.remove(number, projected)
        }
        rules[rule].keys.remove(number, leaving: .none)
    }

    /// Calls `body` with every holder, dead ones included, that a raised key reaches, some at a
    /// time; in an order that depends on nothing but what was done before.
    @inline(__always)
    mutating func visitHolders(
        rule: Int, values: BoundValues, _ body: (UnsafeBufferPointer<Holder>) -> Void
    ) {
        values.withEncoded { key in
            guard let reach = reach(rule: rule, key, isBroad: values.isBroad) else { return }
            visitHolders(rule: rule, key, reach, body)
        }
    }

    /// The same for what was found to be reached, the index being unchanged since.
    @inline(__always)
    mutating func visitHolders(
        rule: Int, _ key: EncodedKey, _ reach: Reach,
        _ body: (UnsafeBufferPointer<Holder>) -> Void
    ) {
        switch reach {
        case .key(let number): visitHolders(of: number, rule, body)
        case .broad:
            for number in numbers(rule, agreeingWith: key.values) {
                visitHolders(of: number, rule, body)
            }
        }
    }

    @inline(__always)
    private mutating func visitHolders(
        of number: Int, _ rule: Int, _ body: (UnsafeBufferPointer<Holder>) -> Void
    ) {
        // Sound: the pointers are used within the closures that lend them.
        withUnsafePointer(to: rules[rule].keys[number].first) {
            body(UnsafeBufferPointer(start: $0, count: 1))
        }
        rules[rule].keys[number].others.withUnsafeBufferPointer(body)
    }

    /// The keys that agree with a broad one are found by what it does not lack: the cost is theirs
    /// and not that of all keys, but for the first time.
    private mutating func numbers(_ rule: Int, agreeingWith values: BoundValues) -> [Int] {
        let missing = values.bytes.missing
        return missing.contains(false)
            ? projection(rule, missing).numbers(values).map { Int($0) }
            : Array(rules[rule].keys.numbers)
    }

    private mutating func projection(_ rule: Int, _ missing: [Bool]) -> KeyProjection {
        if let known = rules[rule].projections[missing] { return known }
        let (keys, owner) = (rules[rule].keys, declared[rule])
        let made = KeyProjection(of: keys.numbers) { number in
            BoundValues(rule: owner, bytes: Array(keys.values(of: number)))
                .lacking(missing, owner)
        }
        rules[rule].projections[missing] = made
        return made
    }
}
