import Foundation
import GatewayDocuments
import GatewaySigning
import GatewayStorage
import WidgetModel

/// The state of a signing key, for people.
package struct SigningKeyState: Sendable {
    /// The names of all supported key algorithms.
    package static let algorithms = SigningAlgorithm.allCases.map(\.rawValue)

    /// The key's name.
    package let kid: String
    package let algorithm: String
    /// The present use of the key, with the time at which it began or ends.
    package let state: String
    /// The public key for receivers of webhooks, `whpk_…`; `nil` for notification keys, which are
    /// published.
    package let publicKey: String?

    package var json: JSONValue {
        var object: JSONObject = [
            "kid": .string(kid), "alg": .string(algorithm), "state": .string(state),
        ]
        if let publicKey { object["publicKey"] = .string(publicKey) }
        return .object(object)
    }
}

package enum KeyPurpose: String, Sendable, CaseIterable {
    case notifications
    case webhooks
}

/// The gateway's keys, for the commands that list and change them.
extension DataDirectory {
    /// The existing keys, the signing key first. Throws ``Faults`` or ``SigningError``.
    package func signingKeys(_ purpose: KeyPurpose) throws -> [SigningKeyState] {
        let (_, ring) = try open(purpose)
        return Self.states(ring, purpose)
    }

    /// Publishes a new key. A notification key signs after one cache lifetime; a webhook key signs
    /// at once beside the previous one, which is removed after two weeks. Rotations at the same
    /// moment create only one key.
    ///
    /// - Throws: ``Faults``, ``SigningError``: `limitExceeded` while the keys of webhooks are
    ///   already being changed.
    package func rotateSigningKey(
        _ purpose: KeyPurpose, to algorithm: String
    ) throws -> [SigningKeyState] {
        var (store, ring) = try open(purpose)
        var rule = KeyRingStore.RotationRule.onceAtAMoment
        if purpose == .webhooks {
            _ = try store.advance(&ring, now: now)
            // Receivers know the keys that existed when they registered: with a third key, one of
            // those would stop signing before the receivers learn the new one.
            rule = .oneAfterAnother(
                refusal: "a webhook key rotation is in progress; wait until one key is left"
            )
        }
        try store.rotate(
            &ring, to: SigningAlgorithm(rawValue: algorithm) ?? .edDSA, now: now, rule: rule)
        return Self.states(ring, purpose)
    }

    /// Whether the directory belongs to a node of a cluster, which may replace its keys by the leader's.
    package var isOfNode: Bool {
        (try? SQLiteStore(readingOnly: path).replicationPosition()) != nil
    }

    private func open(_ purpose: KeyPurpose) throws -> (KeyRingStore, KeyRing) {
        try requireServed()
        let directory = path + (purpose == .webhooks ? "/webhooks" : "/keys")
        guard purpose == .notifications || FileManager.default.fileExists(atPath: directory) else {
            throw Faults("data", "webhooks were never enabled for \(path)")
        }
        let store = KeyRingStore(directory: directory)
        let timing = purpose == .webhooks ? KeyRing.Timing.webhooks : keyTiming
        return (store, try store.openExisting(timing: timing))
    }

    private static func states(_ ring: KeyRing, _ purpose: KeyPurpose) -> [SigningKeyState] {
        ([ring.signing] + ring.others).map { entry in
            let isOfWebhooks = purpose == .webhooks
            let state =
                switch entry.state {
                case .published where isOfWebhooks: "new, signs together with the old key"
                case .published(let from): "published, signs from \(timestamp(from * 1000))"
                case .signing(let since): "signing since \(timestamp(since * 1000))"
                case .retiring(let until) where isOfWebhooks:
                    "old, signs together with the new key until \(timestamp(until * 1000))"
                case .retiring(let until): "retiring until \(timestamp(until * 1000))"
                }
            let publicKey = isOfWebhooks ? try? WebhookSigner([entry.key]).publicKeys.first : nil
            return SigningKeyState(
                kid: entry.key.kid, algorithm: entry.key.algorithm.rawValue, state: state,
                publicKey: publicKey)
        }
    }
}
