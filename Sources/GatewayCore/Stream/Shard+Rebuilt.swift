import WidgetModel

extension Shard {
    /// The latest change that made one of a client's widgets stale, of those after `sequence` and
    /// up to `cursor`; `nil` when none did, or when a later one is all that is remembered.
    ///
    /// Costs the widget's own keys, as a poll does.
    package func latestChange(
        of widget: ConfiguredWidget, of record: ClientRecord, app name: String,
        after sequence: UInt64, upTo cursor: UInt64
    ) -> UInt64? {
        guard let app = number(ofApp: name),
            let kind = apps[app].ruleSet.rules(ofKind: widget.kind)
        else { return nil }
        var latest: UInt64?
        for slot in kind.slots {
            let rule = apps[app].ruleSet.rule(slot)
            guard rule.target != .recommendations else { continue }
            rule.visitKeys(parameters: widget.parameters, attributes: record.attributes) { values in
                rule.visitHashes(reaching: values) { hash in
                    let version = apps[app].versions.version(of: hash)
                    if version > sequence, version <= cursor { latest = max(latest ?? 0, version) }
                }
            }
        }
        return latest
    }
}
