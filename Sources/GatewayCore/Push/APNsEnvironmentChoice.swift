/// APNs' two environments; a token lives in one of them.
package enum APNsEnvironment: UInt8, Sendable, CaseIterable {
    /// `api.push.apple.com`.
    case production
    /// `api.sandbox.push.apple.com`.
    case sandbox

    /// The other one.
    package var other: APNsEnvironment { self == .production ? .sandbox : .production }
}

/// In which environment one token is pushed to.
///
/// Registrations name the wrong one easily, as it depends on how the app was built. The other is
/// tried once; the one that worked stays. A token that changes starts anew.
package struct APNsEnvironmentChoice: Sendable, Hashable {
    /// What is known of ``current``.
    package enum Standing: UInt8, Sendable {
        /// It is the registration's word.
        case stated
        /// The one stated was refused.
        case swapped
        /// A push worked in it.
        case proven
    }

    /// Where the next push goes.
    package private(set) var current: APNsEnvironment
    /// What is known of it.
    package private(set) var standing: Standing

    /// A token that was registered for `stated`.
    package init(stated: APNsEnvironment) {
        self.init(current: stated, standing: .stated)
    }

    /// What was persisted.
    package init(current: APNsEnvironment, standing: Standing) {
        self.current = current
        self.standing = standing
    }

    /// Whether a refusal may be answered by trying the other environment.
    package var mayTryOther: Bool { standing == .stated }

    /// A push worked in `environment`. One still under way there when the other was tried proves
    /// as much.
    package mutating func worked(in environment: APNsEnvironment) {
        current = environment
        standing = .proven
    }

    /// Goes on in the other environment, where that may be tried.
    package mutating func swap() {
        guard mayTryOther else { return }
        current = current.other
        standing = .swapped
    }
}
