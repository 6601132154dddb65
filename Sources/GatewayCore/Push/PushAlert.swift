/// A problem of pushes that needs an operator.
package enum PushAlert: String, Sendable, CaseIterable {
    /// APNs rejects a topic.
    case topicRefused = "topic-refused"
    /// APNs or FCM rejects a key or certificate, or a token signed with it.
    case credentialRefused = "credential-refused"
    /// The push service that a browser chose rejects pushes to its subscription.
    case subscriptionRefused = "subscription-refused"
    /// Token and topic, or token and environment, do not match.
    case pairingRefused = "pairing-refused"
    /// APNs or FCM considers a request invalid: a fault of this program.
    case requestRefused = "request-refused"
    /// APNs or FCM sent a response that this version does not know.
    case answerUnknown = "answer-unknown"
    /// A webhook answered 410.
    case webhookGone = "webhook-gone"
    /// A webhook failed for too long.
    case webhookFailing = "webhook-failing"
    /// The source of content for Live Activities fails repeatedly.
    case contentFailing = "content-failing"
}
