import CatalogModel
import WidgetModel

/// A push to be sent now.
package struct DuePush: Sendable {
    /// The number of the push, to be passed once to
    /// ``PushScheduler/finished(_:_:ends:now:random:)``.
    package let number: UInt64
    package let client: ClientKey
    /// The categories that it reports. A push to a webhook reports everything owed there.
    package let sorts: [PushCategory]
    /// The reason why it is sent.
    package let cause: PushCause
    package let address: DeliveryAddress
    /// The APNs environment, which may differ from the registered one; meaningless for others.
    package let environment: APNsEnvironment
    /// Whether the other environment may be tried if this one rejects the token.
    package let mayTryOtherEnvironment: Bool
    package let content: StaleSet
    /// The sequence up to which it reports everything.
    package let position: UInt64
    /// The highest urgency of the changes that waited for it.
    package let urgency: Urgency
    /// The number of consecutive failures of the address.
    package let failures: Int
    /// The time of the address's last registration, ms since 1970.
    package let registeredAt: Int64
    /// The id of the message to a webhook. Its receiver detects duplicates by it: equal when the
    /// same content is sent to the same address again, also after a restart.
    package let message: UInt64
    /// The Live Activity that it is for; `nil` for any other push.
    package var activity: Activity?
    /// The epoch in which it was composed, for the cursor that it carries.
    package var epoch = EpochID(ordinal: 0, nonce: 0)

    /// Whether a person requested it, so that its result has no consequence.
    package var isManual: Bool { cause == .manual }

    /// A Live Activity with the content that a push has for it.
    package struct Activity: Sendable {
        package let type: String
        package let id: String
        package let attributes: [String: ParameterValue]
        package let source: ContentSource
        /// The value of `apns-priority`, by the budget that the push was counted to.
        package let priority: Int
        /// The start that begins it; `nil` if it is active.
        package var start: RecentStart?
        /// The time by which a device orders its pushes, seconds since 1970; higher than that of
        /// every earlier push.
        package var timestamp: Int64 = 0
        /// The payload; empty before the content is known.
        package var payload: [UInt8] = []
    }
}

/// The reason why a push without content was not sent.
package enum ContentOutcome: Sendable, Hashable {
    /// The source has nothing to say now.
    case nothing
    /// The start has expired, and its source was not asked.
    case expired
    /// There is no content, and the source may request a wait in seconds.
    case failed(ContentFailure, retryAfter: Int64? = nil)
}

package enum PushResult: Sendable, Hashable {
    /// The meaning of a push service's response, or of its absence; whether the push may have
    /// arrived although there was no response; and whether a response came over HTTP/2, so that
    /// requests to that host share connections.
    case service(
        APNsReaction.Verdict, mayHaveArrived: Bool = false, isMultiplexed: Bool? = nil)
    /// The response of a webhook; `nil` for none.
    case webhook(WebhookResponse?)
    /// There is no content to send.
    case content(ContentOutcome)
    /// The gateway did not send it, or gave it up, which says nothing about the address.
    case notSent

    /// Why there was no content; `nil` if there was, or if none was asked for.
    var failure: ContentFailure? {
        if case .content(.failed(let failure, _)) = self { failure } else { nil }
    }
}
