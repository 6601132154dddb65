import GatewayCore
import GatewayEngine
import GatewayPostgres
import GatewayStorage

/// The log and the registrations of a fleet, for the readers of a node.
package final class FleetRecords: EngineRecords, BatchSource {
    private let log: FleetLog
    private let hashes: FleetHashes
    private let seal: RegistrationSeal
    /// Returns why the node does not follow or write the log; `nil` if it does both.
    private let objection: @Sendable () -> String?

    package init(
        _ log: FleetLog, _ address: PostgresAddress, hashes: FleetHashes, seal: RegistrationSeal,
        objection: @escaping @Sendable () -> String?
    ) throws {
        self.log = log
        self.hashes = hashes
        self.seal = seal
        self.objection = objection
    }

    package var head: UInt64 { log.head }

    package var floor: UInt64 { 0 }

    package var figures: StoreStats {
        StoreStats(head: head, floor: floor, isRefusingWrites: objection() != nil)
    }

    package var usage: UsageTable { UsageTable() }

    package func barrier() async throws -> UInt64 { try await log.barrier() }

    package func tag(of sequence: UInt64) async throws -> UInt32? { nil }

    package func logRow(_ sequence: UInt64) async throws -> LogRow? { nil }

    package func changes(
        app: String, before: UInt64, after: UInt64, limit: Int
    ) async throws -> (rows: [LogRow], next: UInt64?) { ([], nil) }

    package func log(
        after sequence: UInt64, through last: UInt64, limit: Int
    ) async throws -> [LogRow] { [] }

    package func lastSequence(acceptedBefore moment: Int64) async throws -> UInt64 { 0 }

    package func catalog(app: String, at sequence: UInt64) async throws -> CatalogRow? { nil }

    package func registrations(
        app: String, attribute: (name: String, value: String)?, prefix: String, after: String?,
        limit: Int
    ) async throws -> RegistrationPage {
        throw StoreError.unavailable(reason: "not read yet")
    }

    package func pushAttempts(
        _ query: PushAttemptQuery, limit: Int
    ) async throws -> [PushAttemptRow] { [] }

    package func providerTokens() async throws -> [ProviderTokenRow] { [] }
}
