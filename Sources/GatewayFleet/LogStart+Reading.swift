import Foundation
import GatewayCore
import GatewayEngine
import GatewayPostgres
import GatewayRecords
import Logging
import Synchronization
import WidgetModel

extension LogStart {
    /// The time between two attempts to read it, in milliseconds.
    private static let retry: Int64 = 2_000

    /// Reads it. Returns when the servers have answered, however long that takes.
    ///
    /// - Throws: `PostgresError` when the kernel provides no descriptor; `CancellationError`.
    static func read(_ address: PostgresAddress, logger: Logger) async throws -> LogStart {
        let loop = try PostgresLoop(name: "start")
        defer { loop.end() }
        let rounds = PostgresRounds<LogStartRound>(address, on: loop)
        var fault = ""
        while true {
            let result = await withCheckedContinuation { continuation in
                rounds.run(LogStartRound()) { continuation.resume(returning: $0) }
            }
            switch result {
            case .success(let start): return start
            case .failure(let error):
                if "\(error)" != fault {
                    logger.warning(
                        "the start of the fleet's log cannot be read; trying again",
                        metadata: ["reason": "\(error)"])
                }
                fault = "\(error)"
            }
            try await Task.sleep(for: .milliseconds(Self.retry))
        }
    }

    /// Returns the state of an engine that has applied nothing behind it.
    ///
    /// - Throws: ``LogApplication/Unreadable`` for a catalog.
    func state(
        _ configuration: EngineConfiguration, _ hashes: StoreHashes
    ) throws(LogApplication.Unreadable) -> StartState {
        let floor = UInt64(position.last)
        var shard = Shard(floor: floor, limits: configuration.coreLimits)
        var compactor = VersionCompactor(floor: floor, limits: configuration.coreLimits)
        var state = CatalogState(
            decider: Decider(hash: hashes.keys, limits: configuration.limits))
        for row in catalogs {
            let sequence = UInt64(row.sequence)
            guard let payload = row.payload else {
                state.remove(app: row.app, at: sequence)
                continue
            }
            do {
                let (catalog, document) = try CatalogDocument.read(
                    Data(payload), of: row.app, at: sequence, hashes)
                let rules = state.install(catalog, document, hashes)
                shard.install(rules)
                compactor.install(rules)
            } catch {
                throw LogApplication.Unreadable(sequence: sequence, reason: "\(error)")
            }
        }
        return StartState(shard: shard, compactor: compactor, catalogs: state, hashes: hashes)
    }
}
