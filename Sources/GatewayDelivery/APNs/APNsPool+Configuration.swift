import CurlMulti
import GatewayCore
import GatewaySigning

extension APNsPool {
    /// The credential, destination and limits of a pool.
    package struct Configuration: Sendable {
        /// The credential that identifies the sender to APNs.
        package enum Credential: Sendable {
            /// Provider tokens signed with a key.
            case key(Key)
            /// A certificate, which itself names its topics, followed by the intermediate
            /// certificates up to its root, and its private key, not encrypted; both in PEM.
            case certificate([UInt8], key: [UInt8])
        }

        package struct Key: Sendable {
            /// The private key: P-256.
            package let key: SigningKey
            /// The key's id, assigned by Apple.
            package let id: String
            /// The team's id.
            package let team: String
            /// The store through which all nodes use the same token; `nil` with a single node.
            package let share: ProviderTokenShare?

            package init(
                _ key: SigningKey, id: String, team: String, share: ProviderTokenShare? = nil
            ) {
                (self.key, self.id, self.team, self.share) = (key, id, team, share)
            }
        }

        /// The destination: `https://` and a host, with a port unless it is 443.
        package var origin: String
        /// The credential that identifies the sender to APNs.
        package var credential: Credential
        /// The certificates to trust.
        package var trust = CurlTrust.system
        /// The most connections in use at once.
        package var connectionsMax = 4
        /// The most pushes in flight on one connection.
        package var windowMax = 500
        /// The most pushes that wait at once; further ones end at once, to be retried later.
        package var waitingMax = 100_000
        /// The longest time from sending a push to its answer.
        package var deadline: Duration = .seconds(30)
        /// The longest wait for a connection, including TLS.
        package var connectDeadline: Duration = .seconds(15)
        /// The time without sending after which a connection is tested with a PING.
        package var idleBeforePing: Duration = .seconds(3_600)
        package var clock = GatewayClock.system

        /// A configuration with the default limits, for one of Apple's environments.
        package init(_ environment: APNsEnvironment, _ credential: Credential) {
            switch environment {
            case .production: origin = "https://api.push.apple.com"
            case .sandbox: origin = "https://api.sandbox.push.apple.com"
            }
            self.credential = credential
        }

        var usesTokens: Bool {
            if case .key = credential { true } else { false }
        }

        var identity: (certificate: [UInt8], key: [UInt8])? {
            guard case .certificate(let certificate, let key) = credential else { return nil }
            return (certificate: certificate, key: key)
        }

        var terms: ConnectionScheduler.Terms {
            ConnectionScheduler.Terms(
                lanesMax: connectionsMax, windowMax: windowMax, usesTokens: usesTokens,
                waitingMax: waitingMax)
        }
    }
}

extension APNsPool.Configuration.Key {
    /// Returns the token to use: another node's if it is still usable, otherwise a new one; `nil`
    /// when no token can be signed.
    ///
    /// - Parameter refused: A token that APNs refused as expired.
    func token(refused: SharedProviderToken?, _ clock: GatewayClock) async -> SharedProviderToken? {
        let known = await share?.read()
        if let known, known != refused, isFit(known, clock),
            key.hasSigned(providerToken: known.text)
        {
            return known
        }
        guard let new = mint(clock) else { return nil }
        guard let share else { return new }
        let held = await share.replace(known, new)
        return held != refused && key.hasSigned(providerToken: held.text) ? held : new
    }

    /// Returns a new token; `nil` when it cannot be signed.
    func mint(_ clock: GatewayClock) -> SharedProviderToken? {
        let issuedAt = clock.wallMilliseconds() / 1_000
        let text = try? key.providerToken(keyID: id, team: team, issuedAt: issuedAt)
        return text.map { SharedProviderToken(text: $0, issuedAt: issuedAt) }
    }

    private func isFit(_ token: SharedProviderToken, _ clock: GatewayClock) -> Bool {
        guard (0...clock.wallMilliseconds() / 1_000 + 60).contains(token.issuedAt) else {
            return false
        }
        var age = ProviderTokenAge()
        let (now, wall) = (clock.now(), clock.wallMilliseconds())
        _ = age.adopted(issuedAt: token.issuedAt * 1_000, now: now, wall: wall)
        return age.token(now: now, wall: wall) != nil
    }
}
