import Foundation
import GatewayCore
import GatewayEngine
import GatewayPostgres
import GatewayRecords
import GatewayStorage
import WidgetModel

/// The log and the registrations of a fleet, for the readers of a node.
package final class FleetRecords: EngineRecords, BatchSource {
    private let log: FleetLog
    private let records: PostgresRecords
    private let hashes: FleetHashes
    private let seal: RegistrationSeal
    /// Returns why the node does not follow or write the log; `nil` if it does both.
    private let objection: @Sendable () -> String?
    private let onUnreadableRow: FleetFollower.UnreadableRowReport

    /// The payload bytes after which a page of registrations ends.
    private static let bytesMax: Int64 = 8 << 20

    /// Creates readers with a connection of their own.
    ///
    /// - Parameter patience: The longest time of a reading, in milliseconds.
    /// - Throws: `PostgresError` when the kernel provides no descriptor.
    package init(
        _ log: FleetLog, _ address: PostgresAddress, patience: Int64, history: BatchHistory,
        hashes: FleetHashes, seal: RegistrationSeal, objection: @escaping @Sendable () -> String?,
        onUnreadableRow: @escaping FleetFollower.UnreadableRowReport
    ) throws {
        self.log = log
        self.hashes = hashes
        self.seal = seal
        self.objection = objection
        self.onUnreadableRow = onUnreadableRow
        records = try PostgresRecords(address, patience: patience) { history.newest }
    }

    /// Reads nothing more.
    func close() { records.close() }

    package var head: UInt64 { log.head }

    package var floor: UInt64 { UInt64(clamping: records.floor) }

    package var cluster: ClusterState? { ClusterState(objection: objection()) }

    package var figures: StoreStats {
        StoreStats(head: head, floor: floor, isRefusingWrites: objection() != nil)
    }

    /// Empty: a node does not count, because it does not know the registrations that it does not
    /// hold.
    package var usage: UsageTable { UsageTable() }

    package func barrier() async throws -> UInt64 { try await log.barrier() }

    // MARK: The log

    package func tag(of sequence: UInt64) async throws -> UInt32? {
        try await reading { () async throws(PostgresError) in
            try await self.records.head(of: Int64(clamping: sequence))?.position.tag
        }
    }

    package func logRow(_ sequence: UInt64) async throws -> LogRow? {
        try await reading { () async throws(PostgresError) in
            try await self.records.batch(of: Int64(clamping: sequence))?.rows()
                .first { $0.sequence == sequence }
        }
    }

    package func changes(
        app: String, before: UInt64, after: UInt64, limit: Int
    ) async throws -> (rows: [LogRow], next: UInt64?) {
        var scan = ChangeScan(
            app: app, before: before, after: max(floor, after), head: head, limit: limit)
        while let range = scan.range {
            try Task.checkCancellation()
            let batches = try await batches(in: range)
            try scan.receive(batches, floor: records.floor)
        }
        return (scan.rows, scan.next)
    }

    package func log(
        after sequence: UInt64, through last: UInt64, limit: Int
    ) async throws -> [LogRow] {
        var scan = LogScan(after: sequence, through: last, limit: limit)
        while let range = scan.range {
            try Task.checkCancellation()
            try scan.receive(try await batches(in: range))
        }
        return scan.rows
    }

    package func lastSequence(acceptedBefore moment: Int64) async throws -> UInt64 {
        try await reading { () async throws(PostgresError) in
            UInt64(clamping: try await self.records.lastSequence(before: moment))
        }
    }

    package func catalog(app: String, at sequence: UInt64) async throws -> CatalogRow? {
        try await reading { () async throws(PostgresError) in
            try await self.records.catalog(of: app, before: Int64(clamping: sequence))
        }.map {
            CatalogRow(app: app, sequence: UInt64(clamping: $0.sequence), payload: Data($0.payload))
        }
    }

    private func batches(in range: BatchRange) async throws -> [StoredBatch] {
        try await reading { () async throws(PostgresError) in
            try await self.records.batches(in: range)
        }
    }

    /// - Throws: ``EngineError/cluster(_:)``.
    private func reading<Value: Sendable>(
        _ body: () async throws(PostgresError) -> Value
    ) async throws(EngineError) -> Value {
        do throws(PostgresError) {
            return try await body()
        } catch {
            throw .cluster(error == .busy ? .busy : .noAnswer)
        }
    }

    // MARK: Registrations

    package func registrations(
        app: String, attribute: (name: String, value: String)?, prefix: String, after: String?,
        limit: Int
    ) async throws -> RegistrationPage {
        let count = min(max(limit, 1), 100_000)
        var listing = RegistrationListing(
            app: app, attribute: attribute.map { hashes.attribute($0.name, $0.value, of: app) },
            prefix: prefix, after: after ?? "", limit: Int64(count), bytesMax: Self.bytesMax)
        while true {
            try Task.checkCancellation()
            let page = try await page(listing)
            var rows: [GatewayStorage.RegistrationRow] = []
            for row in page.rows {
                // A row that cannot be read is that of a client who registers again.
                guard let row = open(row, of: app) else { continue }
                if try attribute.map({ try row.has($0) }) ?? true { rows.append(row) }
            }
            // Of a page that shares no more than a hash, the next one tells how to continue.
            if !rows.isEmpty || !page.hasMore {
                return RegistrationPage(rows: rows, hasMore: page.hasMore)
            }
            listing.after = page.rows.last?.client ?? listing.after
        }
    }

    /// Reads a page once it is durable.
    private func page(_ listing: RegistrationListing) async throws -> RegistrationListing.Page {
        let page = try await reading { () async throws(PostgresError) in
            try await self.records.registrations(listing)
        }
        guard await log.hasApplied(UInt64(clamping: page.head)) else {
            throw EngineError.cluster(.behind)
        }
        return page
    }

    private func open(
        _ row: RegistrationListing.Row, of app: String
    ) -> GatewayStorage.RegistrationRow? {
        let key = hashes.key(of: ClientKey(app: app, client: row.client))
        do throws(SecretError) {
            return GatewayStorage.RegistrationRow(
                key: GatewayStorage.RegistrationKey(app: app, client: row.client),
                payload: try seal.payload(row.payload, of: key), updatedAt: row.updatedAt,
                seenAt: max(row.updatedAt, row.seenDay * 86_400_000))
        } catch {
            onUnreadableRow(key, error)
            return nil
        }
    }

    // MARK: Pushes

    /// None: a node does not record its attempts to push yet.
    package func pushAttempts(
        _ query: PushAttemptQuery, limit: Int
    ) async throws -> [PushAttemptRow] { [] }

    /// None: a node has only those that all nodes share; see ``FleetProviderTokens``.
    package func providerTokens() async throws -> [ProviderTokenRow] { [] }
}

extension GatewayStorage.RegistrationRow {
    /// Returns whether the registration has a value among those of an attribute.
    fileprivate func has(_ attribute: (name: String, value: String)) throws -> Bool {
        try StoredRegistration(payload, limits: .none).record(of: key.client)
            .attributes[attribute.name]?.contains(attribute.value) ?? false
    }
}
