import Foundation
import GatewayEngine
import GatewaySigning
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
    /// What receivers of webhooks verify with, `whpk_…`; `nil` for keys of notifications, which
    /// are published.
    package let publicKey: String?

    /// The state as JSON.
    package var json: JSONValue {
        var object: JSONObject = [
            "kid": .string(kid), "alg": .string(algorithm), "state": .string(state),
        ]
        if let publicKey { object["publicKey"] = .string(publicKey) }
        return .object(object)
    }
}

/// Which keys of a gateway.
package enum KeyPurpose: String, Sendable, CaseIterable {
    /// Those that sign notifications.
    case notifications
    /// Those that sign webhooks.
    case webhooks
}

/// The gateway's keys, for the commands that look at them and change them.
extension DataDirectory {
    /// The keys there are, the one that signs first.
    ///
    /// - Throws: ``Faults``, ``SigningError``.
    package func signingKeys(_ purpose: KeyPurpose) throws -> [SigningKeyState] {
        let (_, ring) = try open(purpose)
        return Self.states(ring, purpose)
    }

    /// Publishes a new key. One for notifications signs after one cache time; one for webhooks
    /// signs at once beside the one before, which goes after two weeks. Rotations at one moment make
    /// one key.
    ///
    /// - Throws: ``Faults``, ``SigningError``: `limitExceeded` while webhooks' keys are changed
    ///   already.
    package func rotateSigningKey(
        _ purpose: KeyPurpose, to algorithm: String
    ) throws -> [SigningKeyState] {
        var (store, ring) = try open(purpose)
        var rule = KeyRingStore.RotationRule.onceAtAMoment
        if purpose == .webhooks {
            _ = try store.advance(&ring, now: now)
            // Receivers know the keys there were when they registered: with a third, one of them
            // would stop to sign before those are told.
            rule = .oneAfterAnother(
                refusal: "the keys of webhooks are being changed; that is over when one key is left"
            )
        }
        try store.rotate(
            &ring, to: SigningAlgorithm(rawValue: algorithm) ?? .edDSA, now: now, rule: rule)
        return Self.states(ring, purpose)
    }

    private func open(_ purpose: KeyPurpose) throws -> (KeyRingStore, KeyRing) {
        try requireServed()
        let directory = path + (purpose == .webhooks ? "/webhooks" : "/keys")
        guard purpose == .notifications || FileManager.default.fileExists(atPath: directory) else {
            throw Faults("data", "no webhooks were ever enabled for \(path)")
        }
        let store = KeyRingStore(directory: directory)
        let timing = purpose == .webhooks ? KeyService.webhookTiming : keyTiming
        return (store, try store.openExisting(timing: timing))
    }

    private static func states(_ ring: KeyRing, _ purpose: KeyPurpose) -> [SigningKeyState] {
        ([ring.signing] + ring.others).map { entry in
            let isOfWebhooks = purpose == .webhooks
            let state =
                switch entry.state {
                case .published(let from) where isOfWebhooks:
                    "new, signs beside the old one, first from \(timestamp(from * 1000))"
                case .published(let from): "published, signs from \(timestamp(from * 1000))"
                case .signing(let since): "signing since \(timestamp(since * 1000))"
                case .retiring(let until) where isOfWebhooks:
                    "old, signs beside the new one until \(timestamp(until * 1000))"
                case .retiring(let until): "retiring until \(timestamp(until * 1000))"
                }
            let publicKey = isOfWebhooks ? try? WebhookSigner([entry.key]).publicKeys.first : nil
            return SigningKeyState(
                kid: entry.key.kid, algorithm: entry.key.algorithm.rawValue, state: state,
                publicKey: publicKey)
        }
    }
}
