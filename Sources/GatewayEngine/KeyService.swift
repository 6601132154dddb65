import GatewayOperations
import GatewaySigning
import Synchronization

/// The gateway's own keys: one ring signs notifications, another the tokens of the local issuer.
/// Those live for a month and would keep a notification key published as long.
package final class KeyService: Sendable {
    private struct Rings: Sendable, Equatable {
        var notifications: KeyRing
        /// `nil` without a local issuer.
        var tokens: KeyRing?
        /// `nil` where there are no webhooks.
        var webhooks: KeyRing?
    }

    private struct Files: Sendable {
        let notifications: KeyRingStore
        let tokens: KeyRingStore
        let webhooks: KeyRingStore

        init(_ data: String) {
            notifications = KeyRingStore(directory: data + "/keys")
            tokens = KeyRingStore(directory: data + "/issuer")
            webhooks = KeyRingStore(directory: data + "/webhooks")
        }
    }

    private let state: Mutex<Rings>
    /// Held while the rings are read again, so that an earlier read never replaces a later one.
    private let advancing = Mutex(())
    private let files: Files
    private let audience: String

    /// Opens the key rings of a data directory; creates them on the first start.
    package init(
        data: String, algorithm: SigningAlgorithm, timing: KeyRing.Timing, hasLocalIssuer: Bool,
        hasWebhooks: Bool, audience: String, now: Int64
    ) throws(SigningError) {
        let files = Files(data)
        self.files = files
        self.audience = audience
        let notifications = try files.notifications.open(
            algorithm: algorithm, timing: timing, now: now)
        let tokens =
            hasLocalIssuer
            ? try files.tokens.open(timing: .tokens, now: now) : nil
        let webhooks =
            hasWebhooks ? try files.webhooks.open(timing: .webhooks, now: now) : nil
        state = Mutex(
            Rings(notifications: notifications, tokens: tokens, webhooks: webhooks))
    }

    /// Signs webhooks with the current key, and also with the adjacent one during a key change;
    /// `nil` where there are no webhooks.
    package var webhookSigner: WebhookSigner? {
        state.withLock { state in
            state.webhooks.flatMap { ring in
                let keys = [ring.signingKey] + ring.others.suffix(1).map(\.key)
                return try? WebhookSigner(keys)
            }
        }
    }

    /// The keys that verify notifications now or in the near future.
    package var publishedKeys: JWKSet { state.withLock { $0.notifications.publishedKeys } }

    /// The maximum cache lifetime of the published keys, in seconds.
    package var keySetMaxAge: Int64 { state.withLock { $0.notifications.timing.keySetMaxAge } }

    /// The time since which the current notification key signs, in seconds since 1970.
    package var notificationKeySince: Int64 {
        state.withLock {
            if case .signing(let since) = $0.notifications.signing.state { since } else { 0 }
        }
    }

    package struct Status: Sendable {
        package let use: String
        package let kid: String
        package let algorithm: String
        package let state: KeyRing.State
    }

    /// Every key of every ring, signing keys first.
    package var standings: [Status] {
        let rings = state.withLock {
            [("notifications", $0.notifications), ("tokens", $0.tokens), ("webhooks", $0.webhooks)]
        }
        return rings.flatMap { use, ring in
            (ring.map { [$0.signing] + $0.others } ?? []).map {
                Status(
                    use: use, kid: $0.key.kid, algorithm: $0.key.algorithm.rawValue,
                    state: $0.state)
            }
        }
    }

    /// Signs notifications with the current key.
    package var notificationSigner: JWSSigner {
        state.withLock { JWSSigner.reloads($0.notifications.signingKey) }
    }

    /// The local issuer, if it is enabled.
    package var trustedLocalIssuer: TrustedIssuer? {
        state.withLock { state in
            state.tokens.map {
                TrustedIssuer(
                    iss: LocalIssuer.name, apps: .any, scopes: Set(Scope.allCases),
                    keys: $0.publishedKeys)
            }
        }
    }

    /// Issues a client token for `ttl` seconds; `nil` when the local issuer is not enabled.
    package func issueClientToken(
        to client: String, app: String, attributes: [String: [String]], ttl: Int64, now: Int64
    ) throws(SigningError) -> String? {
        guard let key = state.withLock({ $0.tokens?.signingKey }) else { return nil }
        return try TokenIssuer(key: key, iss: LocalIssuer.name, aud: audience).issue(
            sub: client, app: app, scopes: [.client], ttl: ttl, attributes: attributes, now: now)
    }

    /// Reads the rings again, because another process may have rotated them, and performs the state
    /// changes that are due. Returns whether anything changed.
    ///
    /// - Parameter hasWebhooks: Whether webhooks, or questions to sources of content, are signed;
    ///   their ring is created on first use.
    /// - Throws: ``SigningError``; the keys in use stay as they were.
    package func advance(now: Int64, hasWebhooks: Bool) throws(SigningError) -> Bool {
        try advancing.withLock { _ throws(SigningError) in
            try readRings(now: now, hasWebhooks: hasWebhooks)
        }
    }

    private func readRings(now: Int64, hasWebhooks: Bool) throws(SigningError) -> Bool {
        let before = state.withLock { $0 }
        let after = try rings(after: before, now: now, hasWebhooks: hasWebhooks)
        guard after != before else { return false }
        state.withLock { $0 = after }
        return true
    }

    private func rings(
        after before: Rings, now: Int64, hasWebhooks: Bool
    ) throws(SigningError) -> Rings {
        var after = before
        after.notifications = try files.notifications.openExisting(
            timing: before.notifications.timing)
        _ = try files.notifications.advance(&after.notifications, now: now)
        if before.tokens != nil {
            var tokens = try files.tokens.openExisting(timing: .tokens)
            _ = try files.tokens.advance(&tokens, now: now)
            after.tokens = tokens
        }
        after.webhooks = nil
        if hasWebhooks {
            var webhooks =
                before.webhooks == nil
                ? try files.webhooks.open(timing: .webhooks, now: now)
                : try files.webhooks.openExisting(timing: .webhooks)
            _ = try files.webhooks.advance(&webhooks, now: now)
            after.webhooks = webhooks
        }
        return after
    }
}
