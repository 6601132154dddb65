import Synchronization

/// The secrets of the cluster at one node: reads them every 30 s, and rotates those whose time has
/// come.
package final class PostgresSecrets: Sendable {
    private let reader: SecretReader

    /// Adds a reader to a loop.
    ///
    /// - Parameters:
    ///   - address: The servers, with the login of the node.
    ///   - key: The fleet key.
    ///   - observe: Called after each reading, on the thread of the loop.
    package init(
        _ address: PostgresAddress, _ key: FleetKey, timing: SecretTiming = SecretTiming(),
        on loop: PostgresLoop,
        observe: @escaping @Sendable (Result<SharedSecrets, PostgresError>) -> Void
    ) {
        let reader = SecretReader(
            rounds: PostgresRounds(address, on: loop), key: key, timing: timing, observe: observe)
        self.reader = reader
        loop.add { SecretTimer(reader) }
    }

    /// The secrets as they were last read.
    package var secrets: SharedSecrets { reader.secrets.withLock { $0 } }
}

/// Reads the secrets, and holds those that were read last.
private final class SecretReader: Sendable {
    let secrets: Mutex<SharedSecrets>
    /// The time of the next reading; `nil` during a reading.
    let due = Mutex<Int64?>(PostgresLoop.now)
    /// The time to the next attempt after a failure, milliseconds.
    private static let retryInterval: Int64 = 2_000

    private let rounds: PostgresRounds<SecretRound>
    private let key: FleetKey
    private let timing: SecretTiming
    private let observe: @Sendable (Result<SharedSecrets, PostgresError>) -> Void

    init(
        rounds: PostgresRounds<SecretRound>, key: FleetKey, timing: SecretTiming,
        observe: @escaping @Sendable (Result<SharedSecrets, PostgresError>) -> Void
    ) {
        secrets = Mutex(SharedSecrets(timing: timing))
        self.rounds = rounds
        self.key = key
        self.timing = timing
        self.observe = observe
    }

    /// Reads if it is time to.
    func readIfDue(at now: Int64) {
        let isDue = due.withLock { due in
            guard let time = due, time <= now else { return false }
            due = nil
            return true
        }
        guard isDue else { return }
        let key = key
        let round = SecretRound(timing: timing) {
            kind throws(SecretError) in try SecretMaterial.row(of: kind, under: key)
        }
        rounds.run(round) { [weak self] in self?.receive($0, sentAt: now) }
    }

    private func receive(_ result: Result<SecretRound.Outcome, PostgresError>, sentAt: Int64) {
        let isRead = (try? result.get()) != nil
        let interval = isRead ? SecretTiming.readInterval * 1_000 : Self.retryInterval
        due.withLock { $0 = PostgresLoop.now + interval }
        let known = result.map { outcome in
            secrets.withLock { secrets in
                secrets.receive(
                    outcome.rows, serverTime: outcome.serverTime, sentAt: sentAt,
                    receivedAt: PostgresLoop.now
                ) { row throws(SecretError) in
                    try key.unwrap(row.wrapped, kind: row.kind, name: row.name)
                }
                return secrets
            }
        }
        observe(known)
    }
}

/// Has the secrets read at their time.
private final class SecretTimer: PostgresLoop.Member {
    private let reader: SecretReader

    init(_ reader: SecretReader) { self.reader = reader }

    var interest: (descriptor: Int32, events: Int16)? { nil }
    var nextTurn: Int64? { reader.due.withLock { $0 } }
    func turn(at now: Int64) { reader.readIfDue(at: now) }
}
