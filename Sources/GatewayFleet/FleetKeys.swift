import Foundation
import GatewayPostgres
import GatewaySettings
import GatewaySigning
import GatewayTLS
import Logging
import Synchronization

/// The secrets that all nodes of a fleet share, as the parts of a gateway use them, with the start
/// of the log that they are for.
package final class FleetKeys: Sendable {
    /// The keys of session tickets: a client resumes on any node.
    package let tickets: TicketKeys
    /// The keyed hashes, which never change.
    package let hashes: FleetHashes
    package let settings: FleetSettings
    /// The state with which the node begins; `nil` once it has, because the copy would keep as much
    /// memory as the node's own.
    private let start: Mutex<NodeStart?>

    private let reader: SecretsReader
    private let timing: KeyRing.Timing

    private init(
        _ settings: FleetSettings, _ reader: SecretsReader, _ hashes: FleetHashes,
        start: NodeStart, timing: KeyRing.Timing
    ) {
        self.hashes = hashes
        tickets = TicketKeys(now: { Int64(Date().timeIntervalSince1970) })
        self.settings = settings
        self.start = Mutex(start)
        self.reader = reader
        self.timing = timing
    }

    /// Reads the secrets; the first node of a fleet makes them. Returns when the servers have
    /// answered.
    ///
    /// - Parameters:
    ///   - timing: The timing of the keys that sign notifications.
    ///   - patience: The longest wait for the secrets; `nil` to wait however long that takes.
    /// - Throws: `SecretError` if this node does not have the key of the fleet; `PostgresError`;
    ///   `SigningError`; ``LogApplication/Unreadable`` for a catalog.
    package static func open(
        _ settings: FleetSettings, timing: KeyRing.Timing, patience: Duration? = nil, logger: Logger
    ) async throws -> FleetKeys {
        let reader = try SecretsReader(settings, logger: logger)
        let secrets = try await reader.first(within: patience)
        // Afterwards: during a move to the log, it has not all secrets yet.
        guard let key = secrets.current(.keyHash, at: PostgresLoop.now) else {
            throw SecretError.cryptoFailed
        }
        let hashes = try FleetHashes(secret: key.secret.withBytes { Array($0) })
        let start = try await NodeStart.read(settings.address, hashes.store, logger: logger)
        let keys = FleetKeys(settings, reader, hashes, start: start, timing: timing)
        guard keys.notifications != nil, keys.tokens != nil else { throw SecretError.cryptoFailed }
        keys.update(reader.secrets)
        reader.onReading { [weak keys] in keys?.update($0) }
        return keys
    }

    /// Returns the state with which the node begins, and forgets it.
    package func removeStart() -> NodeStart? {
        start.withLock { start in
            defer { start = nil }
            return start
        }
    }

    /// The keys that sign notifications; `nil` while this node must not sign.
    package var notifications: KeyRing? { ring(of: .signing, timing) }

    /// The keys of the local issuer; `nil` while this node must not sign.
    package var tokens: KeyRing? { ring(of: .issuer, .tokens) }

    /// The keys that sign what is posted to webhooks; `nil` while this node must not sign.
    package var webhooks: KeyRing? { ring(of: .webhook, .webhooks) }

    private func ring(of kind: SecretKind, _ timing: KeyRing.Timing) -> KeyRing? {
        let (secrets, now) = (reader.secrets, PostgresLoop.now)
        guard let current = secrets.current(kind, at: now), let signing = current.signingKey else {
            return nil
        }
        let others = secrets.valid(kind, at: now).filter { $0.row.name != current.row.name }
        return KeyRing(
            signing: signing, since: current.row.notBefore,
            others: others.compactMap { entry in
                entry.signingKey.map { key in
                    entry.row.notBefore > current.row.notBefore
                        ? KeyRing.Entry(key: key, state: .published(from: entry.row.notBefore))
                        : KeyRing.Entry(
                            key: key, state: .retiring(until: entry.row.notAfter ?? .max))
                }
            }, timing: timing)
    }

    /// The reason why this node must not sign or seal; `nil` if it may.
    package var unreadiness: String? {
        reader.secrets.unreadiness(at: PostgresLoop.now)?.description
    }

    private func update(_ secrets: SharedSecrets) {
        tickets.add(
            secrets.valid(.ticket, at: PostgresLoop.now).compactMap { entry in
                TicketKey(begins: entry.row.notBefore) { output in
                    entry.secret.withBytes { bytes in
                        guard bytes.count == output.count else { return false }
                        output.copyMemory(from: bytes)
                        return true
                    }
                }
            })
    }
}

extension SharedSecrets.Entry {
    /// The private key; `nil` if the secret is not one.
    fileprivate var signingKey: SigningKey? {
        secret.withBytes { try? SigningKey(pem: Array($0)) }
    }
}

/// Reads the secrets on a thread of their own.
private final class SecretsReader: Sendable {
    private struct State {
        var secrets: SharedSecrets?
        var waiting: CheckedContinuation<SharedSecrets, any Error>?
        var observe: (@Sendable (SharedSecrets) -> Void)?
        /// The last fault that was logged.
        var fault = ""
    }

    private let loop: PostgresLoop
    private let state: Mutex<State>
    private let reader = Mutex<PostgresSecrets?>(nil)
    private let logger: Logger

    init(_ settings: FleetSettings, logger: Logger) throws {
        loop = try PostgresLoop(name: "secrets")
        state = Mutex(State())
        self.logger = logger
        let secrets = PostgresSecrets(
            settings.address, settings.key, timing: settings.timing, on: loop
        ) { [weak self] in self?.receive($0) }
        reader.withLock { $0 = secrets }
    }

    deinit { loop.end() }

    /// The secrets as they were last read; empty before.
    var secrets: SharedSecrets {
        reader.withLock { $0 }?.secrets ?? SharedSecrets(kinds: [], timing: SecretTiming())
    }

    /// Calls `body` after each reading from here on, on the thread of the reader.
    func onReading(_ body: @escaping @Sendable (SharedSecrets) -> Void) {
        state.withLock { $0.observe = body }
    }

    /// Returns the secrets once there is one of each kind.
    ///
    /// - Parameter patience: The longest wait; `nil` for none.
    func first(within patience: Duration?) async throws -> SharedSecrets {
        let deadline = patience.map { patience in
            Task {
                try await Task.sleep(for: patience)
                let (waiting, fault) = state.withLock { ($0.waiting.take(), $0.fault) }
                waiting?.resume(throwing: PostgresError.connectionLost(reason: fault))
            }
        }
        defer { deadline?.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            let known = state.withLock { state in
                if state.secrets == nil { state.waiting = continuation }
                return state.secrets
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    private func receive(_ result: Result<SharedSecrets, PostgresError>) {
        var fault = ""
        switch result {
        case .success(let secrets):
            switch secrets.unreadiness(at: PostgresLoop.now) {
            case .unreadable(let error):
                let waiting = state.withLock { $0.waiting.take() }
                waiting?.resume(throwing: error)
                fault = "\(error)"
            case let reason?: fault = "\(reason)"
            case nil:
                let (waiting, observe) = state.withLock { state in
                    state.secrets = secrets
                    return (state.waiting.take(), state.observe)
                }
                waiting?.resume(returning: secrets)
                observe?(secrets)
            }
        case .failure(let error): fault = "\(error)"
        }
        let isNew = state.withLock { state in
            defer { state.fault = fault }
            return state.fault != fault
        }
        if isNew, !fault.isEmpty {
            logger.warning(
                "the shared secrets cannot be read; trying again", metadata: ["reason": "\(fault)"])
        }
    }
}
