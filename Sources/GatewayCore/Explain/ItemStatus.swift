import WidgetModel

/// The status of a client's item: the latest event that made it stale.
package struct ItemStatus: Sendable {
    /// The kind of event that made it stale.
    package enum Cause: String, Sendable {
        /// A data change.
        case change
        /// A reload requested by an operator.
        case reload
        /// The declaration of its kind, or of a new rule for it.
        case catalog
    }

    package let item: Subscription
    /// The sequence of the latest event that made it stale; 0 if none is known.
    package internal(set) var version: UInt64
    /// The kind of that event.
    package internal(set) var cause: Cause
    /// The item's keys, in the form of ``RecentChanges``.
    package internal(set) var keys: [UInt64]
    /// The delivery state of that event on the client's open streams here; `nil` without a stream.
    package internal(set) var telling: StreamDeliveryState?

    /// Returns the same status, combined with the delivery state on another shard's streams.
    package func told(also other: Self) -> Self { told(other.telling) }

    /// Returns the same status, combined with the delivery state on another stream.
    package func told(_ other: StreamDeliveryState?) -> Self {
        var result = self
        result.telling = telling.map { $0.sooner(other) } ?? other
        return result
    }
}

extension Shard {
    /// Returns the status of each item that a client registered and the catalog in force declares,
    /// and the sequence up to which versions were removed; `nil` for an app without a catalog.
    ///
    /// Costs time linear in the client's own keys, like a poll.
    package func items(
        of record: ClientRecord, app name: String
    ) -> (items: [ItemStatus], floor: UInt64)? {
        guard let number = number(ofApp: name) else { return nil }
        let app = apps[number]
        var items: [ItemStatus] = []
        app.ruleSet.visitItems(of: record.registration) { item, rules, parameters in
            items.append(
                standing(of: item, rules: rules, parameters: parameters, for: record, in: app))
        }
        return (items, app.versions.floor)
    }

    private func standing(
        of item: Subscription, rules: KindRules, parameters: [[String: ParameterValue]],
        for record: ClientRecord, in app: AppState
    ) -> ItemStatus {
        var standing = ItemStatus(
            item: item, version: item.isSet ? rules.newestSet : rules.newestTimelines,
            cause: .catalog, keys: [], telling: nil)
        func raise(_ sequence: UInt64, _ cause: ItemStatus.Cause) {
            guard sequence > standing.version else { return }
            (standing.version, standing.cause) = (sequence, cause)
        }
        for scope in [ReloadScope.everything, .client(record.client)] {
            raise(app.versions.version(of: app.ruleSet.operatorKey(scope)), .reload)
        }
        if !item.isSet { raise(app.versions.version(of: rules.operatorKey), .reload) }
        var keys: [(rule: Int, values: BoundValues)] = []
        for slot in rules.slots {
            let rule = app.ruleSet.rule(slot)
            guard (rule.target == .recommendations) == item.isSet else { continue }
            for parameters in parameters {
                rule.visitKeys(parameters: parameters, attributes: record.attributes) { values in
                    keys.append((slot, values))
                    values.visitLacking { keys.append((slot, BoundValues(rule: rule, bytes: $0))) }
                }
            }
        }
        var hashes: Set<UInt64> = []
        for key in keys where hashes.insert(key.values.hash).inserted {
            standing.keys.append(app.ruleSet.recentKey(key.values.hash))
            raise(app.versions.version(of: key.values.hash), .change)
        }
        var tellings: [UInt64: StreamDeliveryState] = [:]
        for key in keys where app.versions.version(of: key.values.hash) == standing.version {
            tellings[key.values.hash] = key.values.withEncoded {
                telling(of: $0, rule: key.rule, by: app.ruleSet, at: standing.version)
            }
        }
        standing.telling = telling(
            to: record.client, app: app.name, kind: item.kind, tellings: tellings,
            of: Array(tellings.keys), at: standing.version)
        return standing
    }
}

extension RecentChanges {
    /// Returns the earliest change after `floor` that bumped one of these keys, in the form of
    /// ``ItemStatus``; `nil` if the changes after `floor` are not all stored any more.
    package func earliest(of keys: [UInt64], after floor: UInt64) -> Hit? {
        keys.compactMap { first(of: $0, from: floor + 1) }.min { $0.sequence < $1.sequence }
    }
}
