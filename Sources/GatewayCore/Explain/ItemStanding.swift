import WidgetModel

/// How something of a client stands: the latest that made it stale.
package struct ItemStanding: Sendable {
    /// What made it stale.
    package enum Cause: String, Sendable {
        /// A data change.
        case change
        /// An operator asked for a reload.
        case reload
        /// Its kind, or a rule of it, is new.
        case catalog
    }

    /// Which.
    package let item: HeldItem
    /// The sequence of the latest that made it stale; 0 for nothing that is remembered.
    package internal(set) var version: UInt64
    /// What that was.
    package internal(set) var cause: Cause
    /// Its keys, as ``RecentChanges`` names them.
    package internal(set) var keys: [UInt64]
    /// What the client's open streams here say of the latest; `nil` without one.
    package internal(set) var telling: Telling?

    /// The same, as a client with streams on another shard too is told.
    package func told(also other: Self) -> Self {
        var result = self
        result.telling = telling.map { $0.sooner(other.telling) } ?? other.telling
        return result
    }
}

extension Shard {
    /// How everything stands that a client registered and the catalog in force declares, and up to
    /// where versions were forgotten; `nil` for an app without a catalog.
    ///
    /// Costs the client's own keys, as a poll does.
    package func items(
        of record: ClientRecord, app name: String
    ) -> (items: [ItemStanding], floor: UInt64)? {
        guard let number = number(ofApp: name) else { return nil }
        let app = apps[number]
        var items: [ItemStanding] = []
        app.ruleSet.visitItems(of: record.registration) { item, rules, parameters in
            items.append(standing(of: item, rules, parameters, record, app))
        }
        return (items, app.versions.floor)
    }

    private func standing(
        of item: HeldItem, _ rules: KindRules, _ parameters: [[String: ParameterValue]],
        _ record: ClientRecord, _ app: AppState
    ) -> ItemStanding {
        var standing = ItemStanding(
            item: item, version: item.isSet ? rules.newestSet : rules.newestTimelines,
            cause: .catalog, keys: [], telling: nil)
        func raise(_ sequence: UInt64, _ cause: ItemStanding.Cause) {
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
        var tellings: [UInt64: Telling] = [:]
        for key in keys where app.versions.version(of: key.values.hash) == standing.version {
            tellings[key.values.hash] = key.values.withEncoded {
                telling(of: $0, rule: key.rule, by: app.ruleSet, at: standing.version)
            }
        }
        standing.telling = telling(
            record.client, app: app.name, kind: item.kind, tellings, of: Array(tellings.keys),
            at: standing.version)
        return standing
    }
}

extension RecentChanges {
    /// The earliest change after `floor` that raised one of these keys, as ``ItemStanding`` has
    /// them; `nil` when what came after `floor` is not remembered whole.
    package func earliest(of keys: [UInt64], after floor: UInt64) -> Hit? {
        keys.compactMap { first(of: $0, from: floor + 1) }.min { $0.sequence < $1.sequence }
    }
}
