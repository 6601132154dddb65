/// What came of one push request.
package enum APNsOutcome: Sendable, Hashable {
    /// APNs answered. The reason is absent on success and where the body could not be read; the
    /// timestamp comes with 410 only: milliseconds since 1970 at which the token was found dead.
    case answered(status: Int, reason: String? = nil, timestamp: Int64? = nil)
    /// It did not.
    case failed(Failure)

    /// Why there was no answer, as people read it.
    package enum Failure: String, Sendable, Hashable, CaseIterable {
        /// The stream lies above the last one a GOAWAY named, or was refused: APNs has certainly
        /// not acted on it.
        case notProcessed = "not-processed"
        /// The connection ended, with or without GOAWAY, before the answer: APNs may have acted.
        case connectionEnded = "connection-ended"
        /// The stream was reset: APNs may have acted.
        case streamReset = "stream-reset"
        /// The answer did not come in time: APNs may have acted.
        case timedOut = "timed-out"
        /// There was no connection: name look-up, connecting or the handshake failed.
        case notConnected = "not-connected"
    }
}

/// What is known of a push request when its outcome is judged.
package struct APNsAttempt: Sendable, Hashable {
    /// When the address was last registered, in milliseconds since 1970.
    package var registeredAt: Int64
    /// When the request was sent, in milliseconds since 1970.
    package var sentAt: Int64
    /// Whether the token may still be tried in APNs' other environment.
    package var mayTryOtherEnvironment = false
    /// How many times this push failed before.
    package var failures = 0
    /// Whether a provider token was minted because of this push.
    package var hasMinted = false
    /// Whether a new connection was opened because of this push.
    package var hasReconnected = false
    /// Whether the connection answered another push after this one was sent by it.
    package var connectionAnswers = false

    /// A first attempt.
    package init(registeredAt: Int64, sentAt: Int64) {
        self.registeredAt = registeredAt
        self.sentAt = sentAt
    }
}
