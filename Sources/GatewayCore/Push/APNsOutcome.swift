import WidgetModel

/// The response to one push request, or the reason why there is none.
package enum APNsOutcome: Sendable, Hashable {
    /// APNs responded. The reason is absent on success and if the body could not be read. The
    /// timestamp, only with 410, is the time at which the token was found dead, ms since 1970.
    case answered(status: Int, reason: String? = nil, timestamp: Int64? = nil)
    /// APNs did not respond.
    case failed(Failure)

    /// Reads a response of APNs.
    package init(status: Int, body: [UInt8]) {
        let members = status == 200 ? nil : try? JSONValue(parsing: body).objectValue
        self = .answered(
            status: status, reason: members?["reason"]?.stringValue,
            timestamp: members?["timestamp"]?.integerValue)
    }

    /// The reason why there was no response; its raw value is shown to people.
    package enum Failure: String, Sendable, Hashable, CaseIterable {
        /// The stream id is above the last one named by a GOAWAY, or the stream was refused: APNs
        /// has certainly not acted on it.
        case notProcessed = "not-processed"
        /// The connection ended, with or without GOAWAY, before the response: APNs may have acted.
        case connectionEnded = "connection-ended"
        /// The stream was reset: APNs may have acted.
        case streamReset = "stream-reset"
        /// The response did not arrive in time: APNs may have acted.
        case timedOut = "timed-out"
        /// There was no connection: name lookup, connecting or the handshake failed.
        case notConnected = "not-connected"
    }
}

/// The state of a push request when its result is evaluated.
package struct APNsAttempt: Sendable, Hashable {
    /// The time of the address's last registration, ms since 1970.
    package var registeredAt: Int64
    /// The time at which the request was sent, ms since 1970.
    package var sentAt: Int64
    /// Whether the token may still be tried in APNs' other environment.
    package var mayTryOtherEnvironment = false
    /// The number of previous failures of this push.
    package var failures = 0
    /// Whether a provider token was created because of this push.
    package var hasMinted = false
    /// Whether a new connection was opened because of this push.
    package var hasReconnected = false
    /// Whether the connection answered another push after this one was sent on it.
    package var connectionAnswers = false

    package init(registeredAt: Int64, sentAt: Int64) {
        self.registeredAt = registeredAt
        self.sentAt = sentAt
    }
}
