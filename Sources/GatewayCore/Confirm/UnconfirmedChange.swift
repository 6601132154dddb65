/// A client's item that is stale according to the client's confirmations: the latest event that
/// made it stale, and the keys for finding an earlier one.
package struct UnconfirmedItem: Sendable, Equatable {
    /// The sequence of the latest event that made it stale.
    package let version: UInt64
    /// The sequence up to which it is confirmed.
    package let confirmed: UInt64
    /// The item's keys, in the form of ``RecentChanges``.
    package let keys: [UInt64]
}

extension Shard {
    /// Returns the items of a client that are stale because of an unconfirmed change, reload or
    /// catalog. Items whose versions were removed are omitted.
    ///
    /// Costs time linear in the client's own keys, like a poll.
    ///
    /// - Parameter confirmed: The sequence up to which the client has applied everything except its
    ///   recommendation sets, which the record contains.
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
    /// Returns the sequence of the earliest unconfirmed change, or of the latest one if the changes
    /// in between are not all stored any more.
    package func earliest(of item: UnconfirmedItem) -> UInt64 {
        min(item.version, earliest(of: item.keys, after: item.confirmed)?.sequence ?? .max)
    }
}
