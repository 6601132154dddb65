import GatewayCore
import GatewayStorage
import WidgetModel

/// The reason why the engine does not do what it was asked.
///
/// It knows nothing of HTTP: ``Problem/engine(_:)`` decides the status and the words of the answer.
package enum EngineError: Error, Sendable {
    /// The app has no catalog.
    case unknownApp
    /// The client is not registered.
    case unknownClient
    /// The document does not fit the catalog or the limits.
    case invalid(Faults)
    /// Events have ids that were used before with other data.
    case eventIDReused(Faults)
    /// The catalog in force is not the one that the caller expected.
    case preconditionFailed
    /// The attributes contradict the token, or are neither vouched for nor self-declared.
    case attributes(ClientAttributes.Refusal)
    /// A client's token registers a webhook, which only its backend may.
    case webhookNeedsBackend
    /// The token that the request was admitted by is no longer trusted.
    case tokenRevoked
    /// The app has as much as it may have.
    case quota(AppQuota.Refusal)
    /// Too much of something waits already, or keeps changing.
    case busy(Contention)
    /// The store does not accept the write.
    case store(StoreError)

    /// The work that too many callers ask for at a time.
    package enum Contention: Sendable {
        /// Registrations of one client wait for each other.
        case registrations
        /// A registration was replaced by others at each attempt.
        case registrationChanges
        /// The catalog was replaced at each attempt.
        case catalogChanges
        /// The event loops are behind the log.
        case eventLoops
        /// Explanations wait for each other.
        case explanations
    }

    /// The stable code, as problems and spans name it.
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
        case .busy, .store: "unavailable"
        }
    }

    /// Whether the gateway failed, rather than refused what its caller sent.
    var isFailure: Bool {
        switch self {
        case .busy, .store: true
        default: false
        }
    }
}

extension EngineError {
    /// The error of a request that its registration's terms refuse.
    init(_ refusal: RegistrationTerms.Refusal) {
        switch refusal {
        case .notRegistered: self = .unknownClient
        case .attributes(let refusal): self = .attributes(refusal)
        }
    }
}

extension Faults {
    /// The fault of a change that invalidates too many keys.
    ///
    /// - Parameter index: The change's place in its batch; `nil` for a change alone.
    package init(_ error: RuleSet.TooManyKeys, _ limits: Limits, index: Int?) {
        self.init(
            index.map { "[\($0)].data" } ?? "data",
            error.kind.map {
                "raises \(error.count) keys for the kind \($0); at most "
                    + "\(limits.changeRuleKeysMax) are allowed for one rule"
            } ?? "raises more than \(limits.changeKeysMax) keys, which is the most for one change")
    }

    /// The fault of a post that invalidates too many keys.
    ///
    /// - Parameter count: Keys of the events up to the one that goes beyond the limit.
    init(keysInPost count: Int, _ limits: Limits) {
        self.init(
            "",
            "raises \(count) keys or more by all its events; at most \(limits.postKeysMax) are "
                + "allowed: post fewer events at once")
    }
}
