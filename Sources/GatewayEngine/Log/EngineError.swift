import GatewayCore
import GatewayStorage
import WidgetModel

/// The reason why the engine rejects a request.
///
/// Independent of HTTP: ``Problem/engine(_:)`` determines the status and the text of the response.
package enum EngineError: Error, Sendable {
    /// The app has no catalog.
    case unknownApp
    case unknownClient
    /// The document violates the catalog or the limits.
    case invalid(Faults)
    /// Events reuse earlier ids with different data.
    case eventIDReused(Faults)
    /// The catalog in force is not the one that the caller expected.
    case preconditionFailed
    /// The attributes contradict the token, or are neither vouched for nor self-declared.
    case attributes(ClientAttributes.Rejection)
    /// A client's token registers a webhook, which only its backend may do.
    case webhookNeedsBackend
    /// The token that admitted the request is no longer trusted.
    case tokenRevoked
    case quota(AppQuota.Rejection)
    /// A rate is exceeded; a request is admitted again after `retryAfter` milliseconds.
    case rate(RequestLimit, TokenRate, retryAfter: Int64)
    /// Too many requests wait already, or the data keeps changing.
    case busy(Contention)
    /// The store does not accept the write.
    case store(StoreError)
    /// The log that other nodes share cannot be used now.
    case cluster(ClusterFailure)
    /// APNs did not create or delete a broadcast channel, for this reason.
    case channelService(String)

    /// The reason why a log that other nodes share cannot be used.
    package enum ClusterFailure: Sendable {
        /// The servers do not answer.
        case noAnswer
        /// The servers take no writes.
        case noWrites
        /// The connection ended while a write was under way.
        case unknownOutcome
    }

    /// The kind of work that too many callers request at once.
    package enum Contention: Sendable {
        /// Too many registrations of one client wait for each other.
        case registrations
        /// Other requests replaced the registration at each attempt.
        case registrationChanges
        /// The catalog was replaced at each attempt.
        case catalogChanges
        /// The event loops are behind the log.
        case eventLoops
        /// Too many explanations wait for each other.
        case explanations
    }

    /// The stable code in problem documents and spans.
    package var code: String {
        switch self {
        case .unknownApp: "unknown-app"
        case .unknownClient: "unknown-client"
        case .invalid: "invalid"
        case .eventIDReused: "event-id-reused"
        case .preconditionFailed: "precondition-failed"
        case .attributes(.contradictsToken), .attributes(.tokenContradicts):
            "attribute-contradicts-token"
        case .attributes(.notVouched): "attribute-not-vouched"
        case .webhookNeedsBackend: "webhook-needs-backend"
        case .tokenRevoked: "token-revoked"
        case .quota(.tooManyClients): "too-many-clients"
        case .quota(.logFull): "log-full"
        case .quota(.exceedsLog): "too-large"
        case .quota(.tooManyStarts): "too-many-starts"
        case .channelService: "channel-service"
        case .rate: "rate-limited"
        case .busy, .store, .cluster: "unavailable"
        }
    }

    /// Whether the gateway failed, as opposed to rejecting its caller's input.
    var isFailure: Bool {
        switch self {
        case .busy, .store, .cluster, .channelService: true
        default: false
        }
    }
}

extension EngineError {
    /// The error for a request that violates its registration's terms.
    init(_ refusal: RegistrationTerms.Rejection) {
        switch refusal {
        case .notRegistered: self = .unknownClient
        case .attributes(let refusal): self = .attributes(refusal)
        }
    }
}

extension Faults {
    /// The fault of a change that invalidates too many keys.
    ///
    /// - Parameter index: The change's index in its batch; `nil` for a single change.
    package init(_ error: RuleSet.TooManyKeys, _ limits: Limits, index: Int?) {
        self.init(
            index.map { "[\($0)].data" } ?? "data",
            error.kind.map {
                "invalidates \(error.count) keys for the kind \($0); at most "
                    + "\(limits.changeRuleKeysMax) are allowed for one rule"
            } ?? "invalidates more than \(limits.changeKeysMax) keys, the limit for one change")
    }

    /// The fault of a post that invalidates too many keys.
    ///
    /// - Parameter count: The keys of the events up to the one that exceeds the limit.
    init(keysInPost count: Int, _ limits: Limits) {
        self.init(
            "",
            "invalidates at least \(count) keys with its events; at most \(limits.postKeysMax) are "
                + "allowed: post fewer events at once")
    }
}
