/// Reads the secrets of the cluster, rotates those whose time has come, and then reads once more.
/// Any node may rotate: of two that make a secret at once, the server takes the first.
package struct SecretRound: PostgresRound {
    /// A secret that was made for one row.
    package struct NewSecret: Sendable {
        /// The name of the row.
        package let name: String
        /// The secret, wrapped for the row.
        package let wrapped: [UInt8]
    }

    /// The table as it was read.
    package struct Outcome: Sendable, Equatable {
        /// All secrets.
        package var rows: [SecretRow]
        /// The server's time, in seconds since 1970.
        package var serverTime: Int64
    }

    private let kinds: [SecretKind]
    private let timing: SecretTiming
    private let make: @Sendable (SecretKind) throws(SecretError) -> NewSecret
    private var hasRotated = false
    private var unanswered = 0

    /// Creates a round.
    ///
    /// - Parameter make: Returns a new secret for the row of a kind.
    package init(
        kinds: [SecretKind] = SecretKind.allCases, timing: SecretTiming,
        make: @escaping @Sendable (SecretKind) throws(SecretError) -> NewSecret
    ) {
        self.kinds = kinds
        self.timing = timing
        self.make = make
    }

    package mutating func begin() -> RoundStep<SecretRequest, Outcome> { .send([.read]) }

    package mutating func receive(
        _ answer: Result<SecretRequest.Answer, PostgresError>
    ) -> RoundStep<SecretRequest, Outcome> {
        switch answer {
        case .success(.secrets(let rows, let serverTime)):
            let requests = hasRotated ? [] : rotation(of: rows, at: serverTime)
            hasRotated = true
            guard requests.isEmpty else {
                unanswered = requests.count
                return .send(requests)
            }
            return .end(Outcome(rows: rows, serverTime: serverTime))
        case .success(.added), .success(.dropped):
            unanswered -= 1
            return .send(unanswered == 0 ? [.read] : [])
        case .failure(let error):
            switch error {
            case .connectionLost, .deadline, .warned: return .fail(error)
            default: break
            }
            // A rotation that is refused, such as by a lock, does not keep the node from reading.
            guard unanswered > 0 else { return .fail(error) }
            unanswered -= 1
            return .send(unanswered == 0 ? [.read] : [])
        }
    }

    private func rotation(of rows: [SecretRow], at now: Int64) -> [SecretRequest] {
        let rotation = SecretRotation(rows, at: now, kinds: kinds, timing: timing)
        let additions = rotation.additions.compactMap { addition -> SecretRequest? in
            // Without entropy the old one stays in use, and the next round tries again.
            guard let new = try? make(addition.kind) else { return nil }
            return .add(addition, name: new.name, wrapped: new.wrapped)
        }
        return additions + (rotation.hasEnded ? [.dropEnded] : [])
    }
}
