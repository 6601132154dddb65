/// The two environments of APNs; a token is valid in one of them.
package enum APNsEnvironment: UInt8, Sendable, CaseIterable {
    /// `api.push.apple.com`.
    case production
    /// `api.sandbox.push.apple.com`.
    case sandbox

    package var other: APNsEnvironment { self == .production ? .sandbox : .production }
}

/// A push service with an account for an app, as rows of the configuration name it.
package enum PushService: Sendable, Hashable {
    case apns(APNsEnvironment)
    /// The services of browsers, which all accept one account.
    case webPush
    case fcm

    /// Whether the service keeps only the last push for a device out of reach.
    var replacesPushes: Bool {
        switch self {
        case .apns: false
        case .webPush, .fcm: true
        }
    }
}

/// The environment for pushes to one token.
///
/// Registrations often name the wrong environment, because it depends on how the app was built. The
/// other one is tried once; the one that worked is kept. A new token starts over.
package struct APNsEnvironmentChoice: Sendable, Hashable {
    /// The certainty of ``current``.
    package enum Status: UInt8, Sendable {
        /// The registration stated it.
        case stated
        /// The stated environment rejected the token, so the other one is tried.
        case swapped
        /// A push succeeded in it.
        case proven
    }

    /// The environment of the next push.
    package private(set) var current: APNsEnvironment
    /// The certainty of the current environment.
    package private(set) var standing: Status

    /// Creates the choice for a token registered for `stated`.
    package init(stated: APNsEnvironment) {
        self.init(current: stated, standing: .stated)
    }

    /// Restores a stored choice.
    init(current: APNsEnvironment, standing: Status) {
        self.current = current
        self.standing = standing
    }

    /// Whether the other environment may be tried after a rejection.
    package var mayTryOther: Bool { standing == .stated }

    /// Records that a push succeeded in `environment`. This includes a push that was still in
    /// flight there when the other environment was tried.
    package mutating func worked(in environment: APNsEnvironment) {
        current = environment
        standing = .proven
    }

    /// Switches to the other environment, if that may be tried.
    package mutating func swap() {
        guard mayTryOther else { return }
        current = current.other
        standing = .swapped
    }
}
