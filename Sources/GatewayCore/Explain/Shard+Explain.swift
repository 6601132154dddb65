import CatalogModel
import WidgetModel

/// The status of an open stream.
package struct StreamStatus: Sendable, Equatable {
    /// The last sent id: everything up to it was sent.
    package let watermark: UInt64
    /// The kinds that it is limited to; `nil` for all.
    package let kinds: Set<String>?
    /// Whether buffered data does not fit.
    package let isLagging: Bool

    package init(watermark: UInt64, kinds: Set<String>?, isLagging: Bool) {
        (self.watermark, self.kinds, self.isLagging) = (watermark, kinds, isLagging)
    }

    /// The state of an item's change on the stream, as far as what was sent tells; `nil` if the
    /// stream does not carry the kind.
    package func telling(of kind: String, at sequence: UInt64) -> StreamDeliveryState? {
        if let kinds, !kinds.contains(kind) { return nil }
        return watermark >= sequence ? .sent : isLagging ? .lagging : .waits(until: 0)
    }
}

extension Shard {
    /// Returns the status of a client's open streams in the order in which they were opened.
    package func streams(of client: String, app name: String) -> [StreamStatus] {
        guard let app = number(ofApp: name) else { return [] }
        return slots(ofClient: client, app).compactMap { slot in
            subscriptions[Int(slot)].map {
                StreamStatus(
                    watermark: streams[Int(slot)].watermark, kinds: $0.kinds,
                    isLagging: streams[Int(slot)].isLagging)
            }
        }
    }

    /// Returns the delivery state of each key that the change at `sequence` bumped, by key hash.
    ///
    /// - Parameter ruleSet: The rule set that decided the change.
    package func tellings(
        of keys: InvalidatedKeys, by ruleSet: RuleSet, at sequence: UInt64
    ) -> [UInt64: StreamDeliveryState] {
        var tellings: [UInt64: StreamDeliveryState] = [:]
        keys.visit { _, rule, _, key in
            tellings[key.hash] = telling(of: key, rule: rule, by: ruleSet, at: sequence)
        }
        return tellings
    }

    func telling(
        of key: EncodedKey, rule: Int, by ruleSet: RuleSet, at sequence: UInt64
    ) -> StreamDeliveryState {
        guard let app = number(ofApp: ruleSet.catalog.app),
            rule < ruleSet.rules.count, ruleSet.rules[rule].collapse > 0
        else { return .sent }
        // A change that lacks an attribute is sent to every holder, and does not wait for this key.
        let values = BoundValues(bytes: Array(key.bytes), hash: key.hash)
        var broad: UInt64?
        values.visitLacking { bytes in
            let key = ruleSet.recentKey(BoundValues(rule: ruleSet.rule(rule), bytes: bytes).hash)
            guard let said = notified.first(of: key, from: sequence)?.sequence else { return }
            broad = min(said, broad ?? .max)
        }
        // A catalog that keeps the rule keeps its windows.
        if broad == nil, let slot = apps[app].ruleSet.slot(of: ruleSet.rules[rule]),
            let window = apps[app].collapse.window(key, rule: slot),
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

    /// Predicts the delivery state of a change that bumps these keys now, by the key's hash.
    package func forecast(
        of keys: InvalidatedKeys, by ruleSet: RuleSet, now: Int64
    ) -> [UInt64: StreamDeliveryState] {
        var tellings: [UInt64: StreamDeliveryState] = [:]
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

    /// Returns the delivery state, on a client's open streams, of a change that affects an item.
    ///
    /// - Parameters:
    ///   - tellings: The delivery state of each of the change's keys.
    ///   - keys: The keys that affect the item.
    ///   - sequence: The sequence of the change; `nil` for a hypothetical one.
    /// - Returns: `nil` when no stream is open for the kind.
    package func telling(
        to client: String, app name: String, kind: String, tellings: [UInt64: StreamDeliveryState],
        of keys: [UInt64], at sequence: UInt64?
    ) -> StreamDeliveryState? {
        guard let app = number(ofApp: name) else { return nil }
        var telling: StreamDeliveryState?
        for slot in slots(ofClient: client, app) {
            guard let subscription = subscriptions[Int(slot)],
                subscription.kinds?.contains(kind) ?? true
            else { continue }
            let stream = streams[Int(slot)]
            telling = Self.telling(
                to: stream, openedAt: subscription.openedAt, tellings: tellings, of: keys,
                at: sequence
            ).sooner(telling)
        }
        return telling
    }

    private static func telling(
        to stream: StreamRecord, openedAt: UInt64, tellings: [UInt64: StreamDeliveryState],
        of keys: [UInt64], at sequence: UInt64?
    ) -> StreamDeliveryState {
        if let sequence {
            if openedAt >= sequence && !stream.isLagging { return .sent }
            if stream.isLagging { return stream.watermark >= sequence ? .sent : .lagging }
        } else if stream.isLagging {
            return .lagging
        }
        var result: StreamDeliveryState?
        for key in keys {
            var telling = tellings[key] ?? .sent
            if let sequence, stream.covered >= sequence {
                // A catch-up has sent it, unless the window's notification came first.
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
