import WidgetModel

/// The notifications of one key to a client, for finding the changes behind a rebuild.
package struct NotifiedKey: Sendable, Equatable {
    /// The key, in the form of ``RuleSet/recentKey(_:)``.
    let key: UInt64
    /// The last change that was notified.
    let last: UInt64
    /// The changes of the notifications, each covering earlier ones; `nil` if every change has its
    /// own notification.
    let notified: [UInt64]?
}

extension RuleSet {
    /// Calls `body` with every key that makes a widget's timeline stale, and the slot of its rule.
    fileprivate func visitKeys(
        of widget: ConfiguredWidget, _ attributes: [String: [String]],
        _ body: (_ slot: Int, EncodedKey) -> Void
    ) {
        for slot in rules(ofKind: widget.kind)?.slots ?? [] {
            let rule = rule(slot)
            guard rule.target != .recommendations else { continue }
            rule.visitKeys(parameters: widget.parameters, attributes: attributes) { values in
                rule.visitKeys(reaching: values) { body(slot, $0) }
            }
        }
    }

    /// Returns a widget's keys for a client that one poll notified of everything up to `last`.
    package func toldKeys(
        of widget: ConfiguredWidget, attributes: [String: [String]], upTo last: UInt64
    ) -> [NotifiedKey] {
        var told: [NotifiedKey] = []
        visitKeys(of: widget, attributes) { _, key in
            told.append(NotifiedKey(key: recentKey(key.hash), last: last, notified: []))
        }
        return told
    }
}

extension Shard {
    /// Returns what open streams were notified of after `floor`, for each of a widget's keys; empty
    /// for an app without a catalog.
    ///
    /// Costs time linear in the widget's own keys, like a poll.
    package func toldKeys(
        of widget: ConfiguredWidget, attributes: [String: [String]], app name: String,
        after floor: UInt64
    ) -> [NotifiedKey] {
        guard let number = number(ofApp: name) else { return [] }
        let app = apps[number]
        var told: [NotifiedKey] = []
        app.ruleSet.visitKeys(of: widget, attributes) { slot, key in
            let name = app.ruleSet.recentKey(key.hash)
            guard slot < app.durations.count, app.durations[slot] > 0 else {
                told.append(NotifiedKey(key: name, last: position, notified: nil))
                return
            }
            let waiting = app.collapse.window(key, rule: slot)?.firstWaiting
            let notified = self.notified.hits(
                of: name, after: floor, limit: ReportedRebuilds.reportsMax)
            told.append(
                NotifiedKey(
                    key: name, last: waiting.map { $0 - 1 } ?? position,
                    notified: notified.map(\.sequence)))
        }
        return told
    }
}

extension RecentChanges {
    /// Returns the changes after `floor` that a client was notified of for a timeline, in order:
    /// the latest ones, one for each report that may wait.
    package func told(_ keys: [NotifiedKey], after floor: UInt64) -> [Hit] {
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
            // A newly opened stream was notified of the latest change by its catch-up.
            told += hits(of: key.key, after: floor, upTo: key.last, limit: 1)
        }
        told.sort { $0.sequence < $1.sequence }
        var changes: [Hit] = []
        for hit in told where hit != changes.last { changes.append(hit) }
        return changes.suffix(limit)
    }
}
