import WidgetModel

/// How an open stream stands.
package struct StreamStanding: Sendable, Equatable {
    /// The id it was last given: everything up to here was said.
    package let watermark: UInt64
    /// The kinds it is narrowed to.
    package let kinds: Set<String>?
    /// Whether bytes wait that do not fit.
    package let isLagging: Bool
}

extension Shard {
    /// How the open streams of a client stand, in the order in which they were opened.
    package func streams(of client: String, app name: String) -> [StreamStanding] {
        guard let app = number(ofApp: name) else { return [] }
        return slots(ofClient: client, app).compactMap { slot in
            subscriptions[Int(slot)].map {
                StreamStanding(
                    watermark: streams[Int(slot)].watermark, kinds: $0.kinds,
                    isLagging: streams[Int(slot)].isLagging)
            }
        }
    }

    /// What was said of each key that the change at `sequence` raised, by the key's hash: it was
    /// said, by a later change's notification, or waits.
    ///
    /// - Parameter ruleSet: What the change was decided by.
    package func tellings(
        of keys: RaisedKeys, by ruleSet: RuleSet, at sequence: UInt64
    ) -> [UInt64: Telling] {
        var tellings: [UInt64: Telling] = [:]
        keys.visit { _, rule, _, key in
            tellings[key.hash] = telling(of: key, rule: rule, by: ruleSet, at: sequence)
        }
        return tellings
    }

    /// What was said of one of them.
    func telling(
        of key: EncodedKey, rule: Int, by ruleSet: RuleSet, at sequence: UInt64
    ) -> Telling {
        guard let app = number(ofApp: ruleSet.catalog.app),
            rule < ruleSet.rules.count, ruleSet.rules[rule].collapse > 0
        else { return .sent }
        // A change that lacks an attribute is said to every holder, and does not wait for this key.
        let values = BoundValues(bytes: Array(key.bytes), hash: key.hash)
        var broad: UInt64?
        values.visitLacking { bytes in
            let key = ruleSet.recentKey(BoundValues(rule: ruleSet.rule(rule), bytes: bytes).hash)
            guard let said = notified.first(of: key, from: sequence)?.sequence else { return }
            broad = min(said, broad ?? .max)
        }
        // A catalog that is replaced ends the windows of its rules.
        if broad == nil, apps[app].ruleSet === ruleSet,
            let window = apps[app].collapse.window(key, rule: rule),
            let first = window.firstWaiting, first <= sequence
        {
            return .waits(until: window.end)
        }
        let own = notified.first(of: ruleSet.recentKey(key.hash), from: sequence)?.sequence
        guard let said = [own, broad].compactMap(\.self).min(), said > sequence else {
            return .sent
        }
        return .collapsed(into: said)
    }

    /// What the windows of keys would make of a change that raises them now, by the key's hash.
    package func forecast(
        of keys: RaisedKeys, by ruleSet: RuleSet, now: Int64
    ) -> [UInt64: Telling] {
        var tellings: [UInt64: Telling] = [:]
        let app = number(ofApp: ruleSet.catalog.app).map { apps[$0] }
        keys.visit { _, rule, _, key in
            tellings[key.hash] = .sent
            guard let app, app.ruleSet === ruleSet,
                let window = app.collapse.window(key, rule: rule)
            else { return }
            if window.firstWaiting != nil || now < window.end {
                tellings[key.hash] = .waits(until: window.end)
            }
        }
        return tellings
    }

    /// What the open streams of a client say of a change that hits something of a kind.
    ///
    /// - Parameters:
    ///   - tellings: What was said of each of the change's keys.
    ///   - keys: Those that hit it.
    ///   - sequence: The change's; `nil` for one that is not made.
    /// - Returns: `nil` where no stream is open for the kind.
    package func telling(
        _ client: String, app name: String, kind: String, _ tellings: [UInt64: Telling],
        of keys: [UInt64], at sequence: UInt64?
    ) -> Telling? {
        guard let app = number(ofApp: name) else { return nil }
        var telling: Telling?
        for slot in slots(ofClient: client, app) {
            guard let subscription = subscriptions[Int(slot)],
                subscription.kinds?.contains(kind) ?? true
            else { continue }
            let stream = streams[Int(slot)]
            telling = Self.telling(
                stream, openedAt: subscription.openedAt, tellings, keys, sequence
            ).sooner(telling)
        }
        return telling
    }

    private static func telling(
        _ stream: StreamRecord, openedAt: UInt64, _ tellings: [UInt64: Telling], _ keys: [UInt64],
        _ sequence: UInt64?
    ) -> Telling {
        if let sequence {
            if openedAt >= sequence && !stream.isLagging { return .sent }
            if stream.isLagging { return stream.watermark >= sequence ? .sent : .lagging }
        } else if stream.isLagging {
            return .lagging
        }
        var result: Telling?
        for key in keys {
            var telling = tellings[key] ?? .sent
            if let sequence, stream.covered >= sequence {
                // A catch-up said it, unless the window's notification came first.
                switch telling {
                case .waits: telling = .sent
                case .collapsed(let into) where stream.covered < into: telling = .sent
                case .collapsed, .sent, .lagging: break
                }
            }
            result = telling.sooner(result)
        }
        return result ?? .sent
    }
}
