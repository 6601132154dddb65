import Foundation
import GatewaySigning
import GatewayStorage
import WidgetModel

/// Where one signing key stands, for people.
package struct SigningKeyState: Sendable {
    /// Names of the algorithms a key can have.
    package static let algorithms = SigningAlgorithm.allCases.map(\.rawValue)

    /// The key's name.
    package let kid: String
    /// Its algorithm.
    package let algorithm: String
    /// What it does now, and until or from when.
    package let state: String

    /// The state as JSON.
    package var json: JSONValue {
        ["kid": .string(kid), "alg": .string(algorithm), "state": .string(state)]
    }
}

/// Durations of tokens, for the command line.
package enum TokenDuration {
    /// Longest life of a client token, in seconds.
    package static let clientMax = TokenOrder.ttlMax

    /// Reads `90`, `90s`, `15m`, `1h` or `30d` as seconds.
    package static func seconds(_ text: String) -> Int64? { TokenOrder.seconds(text) }
}

/// What the commands do that work on a data directory from outside.
extension DataDirectory {
    private var now: Int64 { Int64(Date().timeIntervalSince1970) }

    private var keyStore: KeyRingStore { KeyRingStore(directory: path + "/keys") }

    private func requireServed() throws(Faults) {
        guard FileManager.default.fileExists(atPath: path) else {
            throw Faults("data", "the directory \(path) does not exist")
        }
    }

    /// The keys that sign notifications.
    package func signingKeys() throws -> [SigningKeyState] {
        try requireServed()
        return Self.states(try keyStore.open(timing: keyTiming, now: now))
    }

    /// Publishes a new signing key, which signs after one cache time.
    package func rotateSigningKey(to algorithm: String) throws -> [SigningKeyState] {
        try requireServed()
        var ring = try keyStore.open(timing: keyTiming, now: now)
        try keyStore.rotate(
            &ring, to: SigningAlgorithm(rawValue: algorithm) ?? .edDSA, now: now)
        return Self.states(ring)
    }

    private static func states(_ ring: KeyRing) -> [SigningKeyState] {
        ([ring.signing] + ring.others).map { entry in
            let state =
                switch entry.state {
                case .published(let from): "published, signs from \(timestamp(from * 1000))"
                case .signing(let since): "signing since \(timestamp(since * 1000))"
                case .retiring(let until): "retiring until \(timestamp(until * 1000))"
                }
            return SigningKeyState(
                kid: entry.key.kid, algorithm: entry.key.algorithm.rawValue, state: state)
        }
    }

    /// Opens a new epoch and voids all older ones; returns its number.
    ///
    /// - Throws: `StoreError.alreadyInUse` while a gateway runs on the directory.
    package func openNewEpoch() throws -> Int64 {
        try requireServed()
        let store = try SQLiteStore(directory: path)
        let nonce = try secureRandom(count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return try store.openEpoch(id: nonce, now: now * 1000, voidOlder: true).ordinal
    }
}
