import GatewayCore

/// What a row of the store counts in the usage of its app. A start counts every row; from then on
/// ``StoreTransaction`` counts what its jobs change.
extension UsageTable {
    /// Counts a row of the log.
    package mutating func add(_ row: LogRow) {
        add(AppUsage(logBytes: row.payload.count), to: row.app)
    }

    /// Counts a catalog, whose payload is kept beside its row of the log.
    package mutating func add(_ row: CatalogRow) {
        add(AppUsage(logBytes: row.payload.count), to: row.app)
    }

    /// Counts a registration.
    package mutating func add(_ row: RegistrationRow) {
        add(AppUsage(clients: 1), to: row.key.app)
    }
}
