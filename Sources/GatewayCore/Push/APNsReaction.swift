/// The reaction to the result of a push request: for the push and its address, for the connection,
/// and for the provider token.
package struct APNsReaction: Sendable, Hashable {
    /// The consequence for the push and its address.
    package enum Verdict: Sendable, Hashable {
        /// APNs accepted the push. This implies neither delivery nor a reload.
        case delivered
        /// The token is dead: the address is removed from the registration if it still has the
        /// token of this push.
        case dropAddress
        /// No pushes to the address until its token, environment or topic changes, or the app's
        /// push configuration does: the combination is wrong, but the token may be valid.
        case quarantineAddress
        /// Retry once in APNs' other environment, at once.
        case tryOtherEnvironment
        /// Retry after a wait.
        case retry(APNsWait)
        /// Do not retry this push unchanged. The address stays: the next change creates a new push.
        case giveUp
        /// No pushes in this scope until its configuration changes. Stale content stays owed.
        case stop(Scope)
    }

    package enum Scope: Sendable, Hashable {
        case topic
        /// The key or certificate, in the environment of the push.
        case credential
    }

    /// The consequence for the connection.
    package enum Connection: Sendable, Hashable {
        /// Continue to use the connection.
        case keep
        /// Send no further request on it; open a new one when ``APNsConnectionPace`` allows.
        case replace
    }

    /// The consequence for the provider token.
    package enum ProviderToken: Sendable, Hashable {
        /// Continue to use the token.
        case keep
        /// Create one new token, if its age allows (``ProviderTokenAge``).
        case mint
        /// Use the previous token again.
        case useOlder
    }

    /// The consequence for the push and its address.
    package let verdict: Verdict
    package let connection: Connection
    package let providerToken: ProviderToken
    /// The problem to report to an operator; `nil` for none.
    package let alert: PushAlert?

    package init(
        _ verdict: Verdict, connection: Connection = .keep, providerToken: ProviderToken = .keep,
        alert: PushAlert? = nil
    ) {
        self.verdict = verdict
        self.connection = connection
        self.providerToken = providerToken
        self.alert = alert
    }

    /// Determines the reaction to a result.
    ///
    /// A known reason decides, whatever the status. The list of reasons is open, so for an unknown
    /// one the status decides.
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

    /// Determines the reaction to the response of a browser's push service (RFC 8030 section 5).
    ///
    /// A client chose the service, so no response has a consequence for other addresses. Nor is one
    /// final but that the subscription is gone: a wrong clock or key is mended here, and pushes are
    /// then accepted again.
    ///
    /// - Parameter retryAfter: The wait in seconds that the response requests.
    package init(toWebPush status: Int, retryAfter: Int64?) {
        switch status {
        case 200..<300: self.init(.delivered)
        // The subscription has expired, or was ended.
        case 404, 410: self.init(.dropAddress)
        // It belongs to another key, or the key's token is wrong.
        case 401, 403: self.init(.retry(.device), alert: .subscriptionRefused)
        // By 406 Microsoft's service limits the rate.
        case 406: self.init(.retry(APNsWait(retryAfter: retryAfter)))
        default:
            self.init(
                temporary: status, retryAfter: retryAfter,
                else: .init(.giveUp, alert: .subscriptionRefused))
        }
    }

    /// Determines the reaction to a response of FCM: its own error code decides, otherwise the
    /// status.
    ///
    /// - Parameter retryAfter: The wait in seconds that the response requests.
    package init(toFCM status: Int, _ error: FCMError, retryAfter: Int64?) {
        switch (status, error.code) {
        case (200..<300, _): self.init(.delivered)
        case (_, "UNREGISTERED"?): self.init(.dropAddress)
        case (_, "SENDER_ID_MISMATCH"?): self.init(.retry(.device), alert: .pairingRefused)
        case (_, "THIRD_PARTY_AUTH_ERROR"?): self.init(.retry(.device), alert: .pairingRefused)
        case (400, _) where error.isOfToken: self.init(.dropAddress)
        case (400, _): self.init(.giveUp, alert: .requestRefused)
        // The account is wrong, or its project is unknown.
        case (401, _), (403, _), (404, _):
            self.init(.stop(.credential), alert: .credentialRefused)
        default:
            self.init(
                temporary: status, retryAfter: retryAfter,
                else: .init(.giveUp, alert: .answerUnknown))
        }
    }

    /// Determines the reaction to a response of Google's token endpoint that has no token.
    ///
    /// - Parameter retryAfter: The wait in seconds that the response requests.
    package init(toTokenRequest status: Int, retryAfter: Int64?) {
        // The account is unknown or has another key, or the clock is wrong.
        let isRefused = (400..<500).contains(status)
        self.init(
            temporary: status, retryAfter: retryAfter,
            else: isRefused
                ? .init(.stop(.credential), alert: .credentialRefused) : .init(.retry(.device)))
    }

    /// Reacts to a status by a retry if another attempt may succeed.
    private init(
        temporary status: Int, retryAfter: Int64?, else other: @autoclosure () -> APNsReaction
    ) {
        switch status {
        case 408, 425, 429, 500...: self.init(.retry(APNsWait(retryAfter: retryAfter)))
        default: self = other()
        }
    }

    private init(to failure: APNsOutcome.Failure, of attempt: APNsAttempt) {
        switch failure {
        case .notProcessed:
            // Safe to send again at once, but not in a loop to a peer that rejects everything.
            self.init(
                .retry(attempt.failures == 0 ? .atOnce : .connection), connection: .replace)
        case .connectionEnded, .notConnected:
            self.init(.retry(.connection), connection: .replace)
        case .streamReset:
            self.init(.retry(.connection))
        case .timedOut:
            // A connection whose peer is gone gives no response and no error.
            self.init(
                .retry(.connection), connection: attempt.connectionAnswers ? .keep : .replace)
        }
    }

    private init?(toReason reason: String, _ timestamp: Int64?, of attempt: APNsAttempt) {
        switch reason {
        case "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
            "DuplicateHeaders", "InvalidPushType", "MissingDeviceToken", "MissingTopic",
            "PayloadEmpty", "MissingProviderToken", "BadPath", "MethodNotAllowed",
            "PayloadTooLarge", "BadChannelId", "MissingChannelId", "MissingPushType":
            self.init(.giveUp, alert: .requestRefused)
        case "BadDeviceToken":
            self.init(attempt.mayTryOtherEnvironment ? .tryOtherEnvironment : .dropAddress)
        case "DeviceTokenNotForTopic":
            self.init(.quarantineAddress, alert: .pairingRefused)
        case "Forbidden":
            self.init(.quarantineAddress, alert: .credentialRefused)
        case "TopicMismatch", "FeatureNotEnabled":
            // The credential may push, but not to channels of the app.
            self.init(.quarantineAddress, alert: .topicRefused)
        case "IdleTimeout":
            self.init(.retry(.connection), connection: .replace)
        case "TopicDisallowed":
            self.init(.stop(.topic), alert: .topicRefused)
        case "BadCertificate", "BadCertificateEnvironment", "InvalidProviderToken",
            "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken":
            self.init(.stop(.credential), alert: .credentialRefused)
        case "ExpiredProviderToken":
            // If a new token was created already, the clock is wrong rather than the token too old.
            if attempt.hasMinted {
                self.init(.stop(.credential), alert: .credentialRefused)
            } else {
                self.init(.retry(.atOnce), providerToken: .mint)
            }
        case "UnrelatedKeyIdInToken":
            if attempt.hasReconnected {
                self.init(.stop(.credential), alert: .credentialRefused)
            } else {
                self.init(.retry(.atOnce), connection: .replace)
            }
        case "ExpiredToken", "ChannelNotRegistered":
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
            self.init(.giveUp, alert: .answerUnknown)
        }
    }

    /// Reacts to a dead token. A token registered after APNs found it dead is valid again; without
    /// that time, only one registered after the push was sent is.
    private init(toDeathAt timestamp: Int64?, of attempt: APNsAttempt) {
        let isLive = attempt.registeredAt > timestamp ?? attempt.sentAt
        self.init(isLive ? .retry(.device) : .dropAddress)
    }
}
