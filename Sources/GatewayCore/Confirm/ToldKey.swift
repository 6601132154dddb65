import WidgetModel

/// What a client was told of one key by which changes make a timeline of it stale.
package struct ToldKey: Sendable, Equatable {
    /// As ``RuleSet/recentKey(_:)`` names it.
    let key: UInt64
    /// No later change was told.
    let last: UInt64
    /// The changes that notifications were for, each of them standing for others before it; `nil`
    /// where every change is told by itself.
    let notified: [UInt64]?
}

extension RuleSet {
    /// Calls `body` with every key, and the slot of its rule, by which a change makes a widget's
    /// timeline stale.
    fileprivate func visitKeys(
        of widget: ConfiguredWidget, _ attributes: [String: [String]],
        _ body: (_ slot: Int, EncodedKey) -> Void
    ) {
        for slot in rules(ofKind: widget.kind)?.slots ?? [] {
            let rule = rule(slot)
            guard rule.target != .recommendations else { continue }
            rule.visitKeys(parameters: widget.parameters, attributes: attributes) { values in
                values.withEncoded { body(slot, $0) }
                values.visitLacking { bytes in
                    // Sound: the buffer is read within the closure that lends it.
                    bytes.withUnsafeBytes {
                        body(slot, EncodedKey(hash: rule.keyHash(bytes), bytes: $0))
                    }
                }
            }
        }
    }

    /// A widget's keys for a client that asks, and was told of everything up to `last` at once.
    ///
    /// - Parameter attributes: Those of the client.
    package func toldKeys(
        of widget: ConfiguredWidget, attributes: [String: [String]], upTo last: UInt64
    ) -> [ToldKey] {
        var told: [ToldKey] = []
        visitKeys(of: widget, attributes) { _, key in
            told.append(ToldKey(key: recentKey(key.hash), last: last, notified: []))
        }
        return told
    }
}

extension Shard {
    /// What streams were told of a widget's keys after `floor`; empty for an app without a catalog.
    ///
    /// Costs the widget's own keys, as a poll does.
    ///
    /// - Parameter attributes: Those of the client.
    package func toldKeys(
        of widget: ConfiguredWidget, attributes: [String: [String]], app name: String,
        after floor: UInt64
    ) -> [ToldKey] {
        guard let number = number(ofApp: name) else { return [] }
        let app = apps[number]
        var told: [ToldKey] = []
        app.ruleSet.visitKeys(of: widget, attributes) { slot, key in
            let name = app.ruleSet.recentKey(key.hash)
            guard slot < app.durations.count, app.durations[slot] > 0 else {
                told.append(ToldKey(key: name, last: position, notified: nil))
                return
            }
            let waiting = app.collapse.window(key, rule: slot)?.firstWaiting
            let notified = self.notified.hits(
                of: name, after: floor, limit: ReportedRebuilds.reportsMax)
            told.append(
                ToldKey(
                    key: name, last: waiting.map { $0 - 1 } ?? position,
                    notified: notified.map(\.sequence)))
        }
        return told
    }
}

extension RecentChanges {
    /// The changes that a client was told of a timeline, of those after `floor`, in their order: the
    /// latest of them, one for each report that may wait.
    package func told(_ keys: [ToldKey], after floor: UInt64) -> [Hit] {
        let limit = ReportedRebuilds.reportsMax
        var told: [Hit] = []
        for key in keys {
            guard let notified = key.notified else {
                told += hits(of: key.key, after: floor, upTo: key.last, limit: limit)
                continue
            }
            for sequence in notified where sequence > floor {
                told += hits(of: key.key, after: sequence - 1, upTo: sequence, limit: 1)
            }
            // A stream that opened was told of the latest by its catch-up.
            told += hits(of: key.key, after: floor, upTo: key.last, limit: 1)
        }
        told.sort { $0.sequence < $1.sequence }
        var changes: [Hit] = []
        for hit in told where hit != changes.last { changes.append(hit) }
        return changes.suffix(limit)
    }
}
