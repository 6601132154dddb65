import WidgetModel

/// What of a client is stale, by what it confirmed: the latest that made it so, and by which keys
/// an earlier one is found.
package struct UnconfirmedItem: Sendable, Equatable {
    /// The sequence of the latest that made it stale.
    package let version: UInt64
    /// Up to where it is confirmed.
    package let confirmed: UInt64
    /// Its keys, as ``RecentChanges`` names them.
    package let keys: [UInt64]
}

extension Shard {
    /// What of a client is stale since a change, a reload or a catalog that it did not confirm; of
    /// what versions no longer know, nothing is said.
    ///
    /// Costs the client's own keys, as a poll does.
    ///
    /// - Parameter confirmed: Up to where the client has applied everything but its recommendation
    ///   sets, of which the record knows.
    package func unconfirmed(
        of record: ClientRecord, app: String, confirmed: UInt64
    ) -> [UnconfirmedItem] {
        (items(of: record, app: app)?.items ?? []).compactMap { standing in
            let confirmed =
                standing.item.isSet
                ? record.confirmed[standing.item.kind] ?? record.since
                : max(confirmed, record.since)
            return standing.version > confirmed
                ? UnconfirmedItem(
                    version: standing.version, confirmed: confirmed, keys: standing.keys) : nil
        }
    }
}

extension RecentChanges {
    /// The sequence of the earliest change after what was confirmed, or of the latest where what
    /// came between is not remembered whole.
    package func earliest(of item: UnconfirmedItem) -> UInt64 {
        min(item.version, earliest(of: item.keys, after: item.confirmed)?.sequence ?? .max)
    }
}
