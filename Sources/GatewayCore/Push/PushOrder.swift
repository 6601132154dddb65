import WidgetModel

/// A push to be made now.
package struct PushOrder: Sendable {
    /// Names the push; ``PushDesk/finished(_:_:now:random:)`` is told of it once.
    package let number: UInt64
    /// Whom it is for.
    package let client: ClientKey
    /// What of the client it is about. A webhook is told everything that is owed there.
    package let sorts: [PushSort]
    /// Whether a person asked for it: whatever comes of it, nothing follows.
    package let isManual: Bool
    /// Where it goes.
    package let address: DeliveryAddress
    /// In which of APNs' environments, which need not be the one registered; of no meaning
    /// otherwise.
    package let environment: APNsEnvironment
    /// Whether the other environment may be tried if this one refuses the token.
    package let mayTryOtherEnvironment: Bool
    /// What is stale.
    package let content: StaleSet
    /// Up to where it speaks of everything.
    package let position: UInt64
    /// The highest urgency of what waited for it.
    package let urgency: Urgency
    /// How many times in a row the address failed.
    package let failures: Int
    /// When the address was last registered, in milliseconds since 1970.
    package let registeredAt: Int64
    /// Names the message to a webhook, whose receiver takes one of that name for one it has: equal
    /// when the same is said to the same address again, after a restart too.
    package let message: UInt64
    /// The epoch in which it was composed, for the cursor that it carries.
    package var epoch = EpochID(ordinal: 0, nonce: 0)
}

/// What came of a push.
package enum PushResult: Sendable, Hashable {
    /// What APNs' answer, or its absence, means; and whether the push may have arrived although
    /// there was no answer.
    case apns(APNsReaction.Verdict, mayHaveArrived: Bool = false)
    /// What a webhook answered.
    case webhook(WebhookSchedule.Answer)
}
