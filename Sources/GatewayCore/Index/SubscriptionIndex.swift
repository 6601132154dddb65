/// The live index of one app on one shard: maps each key to the streams that depend on it.
///
/// It compares real values: a notification names them, so a hash collision must not deliver it to
/// another stream.
struct SubscriptionIndex {
    /// A stream's registration in force; valid until the generation changes.
    struct Subscriber {
        let stream: UInt32
        let generation: UInt32
    }

    /// The holders of one key. A holder whose generation has ended is dead. Dead holders are
    /// removed when they are the majority, so that ending one is cheap and a long list is never
    /// searched.
    private struct SubscriberList {
        /// Most keys have a single holder, which needs no heap object.
        var first: Subscriber
        var others: [Subscriber] = []
        var dead: UInt32 = 0

        static let none = SubscriberList(first: Subscriber(stream: 0, generation: 0))

        var count: Int { others.count + 1 }

        mutating func sweep(_ isAlive: (Subscriber) -> Bool) {
            others.removeAll { !isAlive($0) }
            if !isAlive(first), let last = others.popLast() { first = last }
            dead = 0
        }
    }

    private struct RuleIndex {
        var keys = KeyTable<SubscriberList>()
        /// The projections for broad changes, by the attributes they lack; created when the first
        /// such change arrives.
        var projections: [[Bool]: KeyProjection] = [:]
    }

    /// The rules, stored apart from their keys, so that creating an index does not touch each of
    /// them: there may be tens of thousands.
    private let declared: [Rule]
    private var rules: [RuleIndex]

    /// Creates an index for these rules, in their order.
    init(rules: [Rule]) {
        declared = rules
        self.rules = Array(repeating: RuleIndex(), count: rules.count)
    }

    /// The keys that a bumped key affects; some have holders, dead ones included.
    enum Reach {
        /// The one key with the same values.
        case key(Int)
        /// All keys that match; the bumped key is broad.
        case broad
    }

    /// Returns the keys that a bumped key affects; `nil` when no stream depends on them.
    @inline(__always)
    mutating func reach(rule: Int, _ key: EncodedKey, isBroad: Bool) -> Reach? {
        if isBroad { return isHeld(rule: rule, broad: key.values) ? .broad : nil }
        return rules[rule].keys.find(key).map { .key($0) }
    }

    /// Prefetches the memory for looking up the keys of a change, here and in `versions`.
    mutating func prefetch(_ keys: InvalidatedKeys, _ versions: VersionWindow) {
        // Sound: the buffer is used within the closure that lends it, after a bounds check.
        rules.withUnsafeMutableBufferPointer { rules in
            keys.visit { _, rule, _, key in
                if rule < rules.count { rules[rule].keys.prefetch(key.hash) }
                versions.prefetch(key.hash)
            }
        }
    }

    /// Prefetches the memory of streams that hold a key.
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

    /// Returns whether any stream depends on the keys that a bumped key affects.
    mutating func isHeld(rule: Int, values: BoundValues) -> Bool {
        values.withEncoded { reach(rule: rule, $0, isBroad: values.isBroad) != nil }
    }

    private mutating func isHeld(rule: Int, broad values: BoundValues) -> Bool {
        let missing = values.bytes.missing
        return missing.contains(false)
            ? projection(rule, missing).isHeld(values) : !rules[rule].keys.isEmpty
    }

    mutating func insert(_ holder: Subscriber, rule: Int, values: BoundValues) {
        if let number = rules[rule].keys.find(values) {
            rules[rule].keys[number].others.append(holder)
            return
        }
        let number = rules[rule].keys.add(values, SubscriberList(first: holder))
        for missing in rules[rule].projections.keys {
            let projected = values.lacking(missing, declared[rule])
            rules[rule].projections[missing]?.add(number, projected)
        }
    }

    /// Records that a holder of the key ended; `isAlive` returns whether another holder is alive.
    mutating func end(rule: Int, values: BoundValues, isAlive: (Subscriber) -> Bool) {
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

    /// Calls `body` with every holder, dead ones included, that a bumped key affects, several at a
    /// time, in an order that depends only on the preceding operations.
    @inline(__always)
    mutating func visitHolders(
        rule: Int, values: BoundValues, _ body: (UnsafeBufferPointer<Subscriber>) -> Void
    ) {
        values.withEncoded { key in
            guard let reach = reach(rule: rule, key, isBroad: values.isBroad) else { return }
            visitHolders(rule: rule, key, reach, body)
        }
    }

    /// Calls `body` with the holders of a key found by ``reach``; the index must be unchanged
    /// since.
    @inline(__always)
    mutating func visitHolders(
        rule: Int, _ key: EncodedKey, _ reach: Reach,
        _ body: (UnsafeBufferPointer<Subscriber>) -> Void
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
        of number: Int, _ rule: Int, _ body: (UnsafeBufferPointer<Subscriber>) -> Void
    ) {
        // Sound: the pointers are used within the closures that lend them.
        withUnsafePointer(to: rules[rule].keys[number].first) {
            body(UnsafeBufferPointer(start: $0, count: 1))
        }
        rules[rule].keys[number].others.withUnsafeBufferPointer(body)
    }

    /// Returns the keys that match a broad one. They are found by the attributes that it has, so
    /// that except for the first time the cost is linear in the matching keys, not in all keys.
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
