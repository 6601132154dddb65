/// What to do about the outcome of a push request: with the push and its address, with the
/// connection, and with the provider token.
package struct APNsReaction: Sendable, Hashable {
    /// What becomes of the push and its address.
    package enum Verdict: Sendable, Hashable {
        /// APNs took it, which says neither that it was delivered nor that anything was reloaded.
        case delivered
        /// The token is dead: the address is removed from the registration if it still has the
        /// token that was pushed to.
        case dropAddress
        /// Nothing is pushed to the address until its token, environment or topic changes, or the
        /// app's push configuration does: the pairing is wrong and the token may be good.
        case quarantineAddress
        /// Push once to APNs' other environment, at once.
        case tryOtherEnvironment
        /// Push again after a while.
        case retry(APNsWait)
        /// Never push this again unchanged. The address stays: the next change makes a new push.
        case giveUp
        /// Push nothing to anyone in that scope until its configuration changes. What is stale
        /// stays owed.
        case stop(Scope)
    }

    /// How much stops.
    package enum Scope: Sendable, Hashable {
        /// The topic.
        case topic
        /// The key or certificate, in the environment the push went to.
        case credential
    }

    /// What becomes of the connection.
    package enum Connection: Sendable, Hashable {
        /// It goes on.
        case keep
        /// No further request uses it; a new one is opened, as fast as ``APNsConnectionPace``
        /// allows.
        case replace
    }

    /// What becomes of the provider token.
    package enum ProviderToken: Sendable, Hashable {
        /// It goes on.
        case keep
        /// One new token is minted, if its age allows (``ProviderTokenAge``).
        case mint
        /// The token before it is used again.
        case useOlder
    }

    /// What an operator is told.
    package enum Alert: Sendable, Hashable {
        /// The request was wrong: a fault of this program.
        case badRequest
        /// APNs refuses the topic.
        case topic
        /// APNs refuses the key, the certificate or what was signed with it.
        case credential
        /// Token and topic, or token and environment, do not belong together.
        case pairing
        /// APNs answered what this program does not know.
        case unknown
    }

    /// What becomes of the push and its address.
    package let verdict: Verdict
    /// What becomes of the connection.
    package let connection: Connection
    /// What becomes of the provider token.
    package let providerToken: ProviderToken
    /// What an operator is told, if anything.
    package let alert: Alert?

    /// A reaction.
    package init(
        _ verdict: Verdict, connection: Connection = .keep, providerToken: ProviderToken = .keep,
        alert: Alert? = nil
    ) {
        self.verdict = verdict
        self.connection = connection
        self.providerToken = providerToken
        self.alert = alert
    }

    /// The reaction to an outcome.
    ///
    /// A reason that is known decides, whatever status it comes with; the list is open, so an
    /// unknown one leaves it to the status.
    package init(to outcome: APNsOutcome, of attempt: APNsAttempt) {
        switch outcome {
        case .failed(let failure):
            self.init(to: failure, of: attempt)
        case .answered(200..<300, _, _):
            self.init(.delivered)
        case .answered(let status, let reason, let timestamp):
            self =
                reason.flatMap { Self(toReason: $0, timestamp, of: attempt) }
                ?? Self(toStatus: status, timestamp, of: attempt)
        }
    }

    private init(to failure: APNsOutcome.Failure, of attempt: APNsAttempt) {
        switch failure {
        case .notProcessed:
            // Safe to send again, but a peer that refuses everything is not asked in a loop.
            self.init(
                .retry(attempt.failures == 0 ? .atOnce : .connection), connection: .replace)
        case .connectionEnded, .notConnected:
            self.init(.retry(.connection), connection: .replace)
        case .streamReset:
            self.init(.retry(.connection))
        case .timedOut:
            // A connection whose peer is gone answers nothing, and says nothing either.
            self.init(
                .retry(.connection), connection: attempt.connectionAnswers ? .keep : .replace)
        }
    }

    private init?(toReason reason: String, _ timestamp: Int64?, of attempt: APNsAttempt) {
        switch reason {
        case "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
            "DuplicateHeaders", "InvalidPushType", "MissingDeviceToken", "MissingTopic",
            "PayloadEmpty", "MissingProviderToken", "BadPath", "MethodNotAllowed",
            "PayloadTooLarge":
            self.init(.giveUp, alert: .badRequest)
        case "BadDeviceToken":
            self.init(attempt.mayTryOtherEnvironment ? .tryOtherEnvironment : .dropAddress)
        case "DeviceTokenNotForTopic":
            self.init(.quarantineAddress, alert: .pairing)
        case "Forbidden":
            self.init(.quarantineAddress, alert: .credential)
        case "IdleTimeout":
            self.init(.retry(.connection), connection: .replace)
        case "TopicDisallowed":
            self.init(.stop(.topic), alert: .topic)
        case "BadCertificate", "BadCertificateEnvironment", "InvalidProviderToken",
            "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken":
            self.init(.stop(.credential), alert: .credential)
        case "ExpiredProviderToken":
            // The next push finds out that it was the clock, not the age.
            if attempt.hasMinted {
                self.init(.stop(.credential), alert: .credential)
            } else {
                self.init(.retry(.atOnce), providerToken: .mint)
            }
        case "UnrelatedKeyIdInToken":
            if attempt.hasReconnected {
                self.init(.stop(.credential), alert: .credential)
            } else {
                self.init(.retry(.atOnce), connection: .replace)
            }
        case "ExpiredToken":
            self.init(.dropAddress)
        case "Unregistered":
            self.init(toDeathAt: timestamp, of: attempt)
        case "TooManyProviderTokenUpdates":
            self.init(.retry(.connection), providerToken: .useOlder)
        case "TooManyRequests":
            self.init(.retry(.device))
        case "InternalServerError":
            self.init(.retry(.service))
        case "ServiceUnavailable", "Shutdown":
            self.init(.retry(.service), connection: .replace)
        default:
            return nil
        }
    }

    private init(toStatus status: Int, _ timestamp: Int64?, of attempt: APNsAttempt) {
        switch status {
        case 410:
            self.init(toDeathAt: timestamp, of: attempt)
        case 429:
            self.init(.retry(.device))
        case 500:
            self.init(.retry(.service))
        case 501...:
            self.init(.retry(.service), connection: .replace)
        default:
            self.init(.giveUp, alert: .unknown)
        }
    }

    /// A token registered after APNs found it dead is live again. Without that moment, only one
    /// registered after the push was sent is.
    private init(toDeathAt timestamp: Int64?, of attempt: APNsAttempt) {
        let isLive = attempt.registeredAt > timestamp ?? attempt.sentAt
        self.init(isLive ? .retry(.device) : .dropAddress)
    }
}
