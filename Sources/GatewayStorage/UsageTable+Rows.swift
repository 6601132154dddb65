import GatewayCore

/// The contribution of a stored row to the usage of its app. A start counts every row; afterwards
/// ``StoreTransaction`` counts the changes of its jobs.
extension UsageTable {
    package mutating func add(_ row: LogRow) {
        add(AppUsage(logBytes: row.payload.count), to: row.app)
    }

    /// Counts a catalog, whose payload is stored in addition to its row of the log.
    package mutating func add(_ row: CatalogRow) {
        add(AppUsage(logBytes: row.payload.count), to: row.app)
    }

    package mutating func add(_ row: RegistrationRow) {
        add(AppUsage(clients: 1), to: row.key.app)
    }
}
