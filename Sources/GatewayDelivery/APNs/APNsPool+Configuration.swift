import GatewayCore
import GatewayPush
import GatewaySigning

extension APNsPool {
    /// What a pool sends with, and where to.
    package struct Configuration: Sendable {
        /// What APNs knows the sender by.
        package enum Credential: Sendable {
            /// Provider tokens of a key.
            case key(Key)
            /// A certificate, which names its topics itself.
            case certificate(APNsIdentity)
        }

        /// A team's key.
        package struct Key: Sendable {
            /// The key: P-256.
            package let key: SigningKey
            /// The name that Apple gave it.
            package let id: String
            /// The team.
            package let team: String
            /// Where all nodes find the same token; `nil` where there is one node only.
            package let share: ProviderTokenShare?

            /// A key.
            package init(
                _ key: SigningKey, id: String, team: String, share: ProviderTokenShare? = nil
            ) {
                (self.key, self.id, self.team, self.share) = (key, id, team, share)
            }
        }

        /// Where to: `https://` and a host, with a port unless it is 443.
        package var origin: String
        /// What APNs knows the sender by.
        package var credential: Credential
        /// PEM file of the only certificates to trust; `nil` trusts the system's.
        package var caFile: String?
        /// Connections in use at once, at most.
        package var connectionsMax = 4
        /// Pushes under way at once by one connection, at most.
        package var windowMax = 500
        /// Pushes that wait at once; further ones are given up for now.
        package var waitingMax = 100_000
        /// Longest time from sending a push to its answer.
        package var deadline: Duration = .seconds(30)
        /// Longest wait for a connection, TLS included.
        package var connectDeadline: Duration = .seconds(15)
        /// A connection on which nothing was sent for so long is asked whether it is still there.
        package var idleBeforePing: Duration = .seconds(3_600)
        /// What time it is.
        package var clock = GatewayClock.system

        /// The usual bounds, at Apple's.
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

        var identity: APNsIdentity? {
            if case .certificate(let identity) = credential { identity } else { nil }
        }

        var terms: ConnectionScheduler.Terms {
            ConnectionScheduler.Terms(
                lanesMax: connectionsMax, windowMax: windowMax, usesTokens: usesTokens,
                waitingMax: waitingMax)
        }
    }
}

extension APNsPool.Configuration.Key {
    /// The token to use: that of another node if it is of use, and else a new one; `nil` when
    /// nothing can be signed.
    ///
    /// - Parameter refused: A token that APNs takes for expired.
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
        return key.hasSigned(providerToken: held.text) ? held : new
    }

    /// A new token.
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
