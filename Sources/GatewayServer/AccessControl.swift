import GatewayEngine
import GatewayOperations
import GatewaySigning
import Synchronization

/// Applies the access policy of the configuration, and ends the streams that it no longer admits.
final class AccessControl: Sendable {
    private let access: AccessState
    private let current: CurrentConfiguration
    private let keys: KeyService
    private let issuerKeys: IssuerKeys
    private let audiences: Set<String>
    private let loops: ShardLoops
    /// Held while the policy is replaced, so that the later of two updates reads the newer
    /// configuration.
    private let updating = Mutex(())

    init(
        _ access: AccessState, _ current: CurrentConfiguration, keys: KeyService,
        issuerKeys: IssuerKeys, audiences: Set<String>, loops: ShardLoops
    ) {
        self.access = access
        self.current = current
        self.keys = keys
        self.issuerKeys = issuerKeys
        self.audiences = audiences
        self.loops = loops
    }

    /// Returns the token policy of a configuration.
    static func policy(
        _ configuration: GatewayConfiguration, keys: KeyService, issuerKeys: IssuerKeys,
        audiences: Set<String>
    ) -> TokenPolicy {
        var issuers = configuration.issuers.map { $0.trusted(issuerKeys.set) }
        if let local = keys.trustedLocalIssuer { issuers.append(local) }
        return TokenPolicy(
            issuers: issuers, audiences: audiences, denied: configuration.denied)
    }

    /// Replaces the policy with that of the current configuration and key rings.
    func update() {
        updating.withLock { _ in
            let configuration = current.value
            access.verifier.replace(
                with: TokenVerifier(
                    policy: Self.policy(
                        configuration, keys: keys, issuerKeys: issuerKeys, audiences: audiences),
                    limits: configuration.limits))
            access.grants.replace(with: configuration.certificateGrants)
            // After both: a stream that reads the new revision is judged by the new policy, and one
            // that reads the old revision is open before the sweep begins.
            access.revision.advance()
            let policy = access.policy
            for shard in loops.all { shard.endStreams(notAdmittedBy: policy) }
        }
    }
}
