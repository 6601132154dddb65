import GatewayPostgres
import GatewayRecords
import Logging

extension NodeStart {
    /// The time between two attempts to read it, in milliseconds.
    private static let retry: Int64 = 2_000

    /// Reads the newest snapshot that fits, otherwise the one before it, otherwise the log's floor.
    /// Retention waits for this node from there on. Returns when the servers have answered, however
    /// long that takes.
    ///
    /// - Throws: `PostgresError` when the kernel provides no descriptor; `CancellationError`;
    ///   ``LogApplication/Unreadable`` for a catalog.
    static func read(
        _ address: PostgresAddress, _ hashes: StoreHashes, logger: Logger
    ) async throws -> NodeStart {
        let loop = try PostgresLoop(name: "start")
        defer { loop.end() }
        let snapshots = PostgresRounds<SnapshotReader>(address, on: loop)
        let logs = PostgresRounds<LogStartRound>(address, on: loop)
        var misfits: [Int64: SnapshotReader.Misfit] = [:]
        while true {
            let outcome = try await result(of: snapshots, logger) {
                SnapshotReader(passingOver: misfits)
            }
            let log = try await result(of: logs, logger) { LogStartRound(at: outcome.position) }
            if let start = try NodeStart(outcome, log, hashes) { return start }
            misfits[outcome.position.last] = .malformed
        }
    }

    /// Runs a round until it succeeds.
    private static func result<Round: PostgresRound>(
        of rounds: PostgresRounds<Round>, _ logger: Logger, _ round: () -> Round
    ) async throws -> Round.Outcome {
        var fault = ""
        while true {
            let round = round()
            let result = await withCheckedContinuation { continuation in
                rounds.run(round) { continuation.resume(returning: $0) }
            }
            switch result {
            case .success(let outcome): return outcome
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
}
