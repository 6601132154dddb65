import GatewaySigning
import Synchronization

/// Puts the access policy of the configuration in force, and ends the streams that it no longer
/// admits.
final class AccessControl: Sendable {
    private let authorizer: Authorizer
    private let current: CurrentConfiguration
    private let keys: KeyService
    private let audiences: Set<String>
    private let loops: ShardLoops
    /// Held while the policy is replaced, so that of two updates the later one reads the newer
    /// configuration.
    private let updating = Mutex(())

    init(
        _ authorizer: Authorizer, _ current: CurrentConfiguration, keys: KeyService,
        audiences: Set<String>, loops: ShardLoops
    ) {
        self.authorizer = authorizer
        self.current = current
        self.keys = keys
        self.audiences = audiences
        self.loops = loops
    }

    /// Replaces the policy by that of the current configuration and key rings.
    func update() {
        updating.withLock { _ in
            let configuration = current.value
            authorizer.verifier.replace(
                with: TokenVerifier(
                    policy: Gateway.policy(configuration, keys, audiences),
                    limits: configuration.limits))
            authorizer.grants.replace(with: configuration.certificateGrants)
            // After both: a stream that reads the new revision is judged by the new policy, and one
            // that reads the old one is open before the sweep begins.
            authorizer.revision.advance()
            let policy = authorizer.policy
            for shard in loops.all { shard.endStreams(notAdmittedBy: policy) }
        }
    }
}
