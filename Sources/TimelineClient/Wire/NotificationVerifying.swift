import WidgetModel

/// Tells whether the gateway said what a notification says.
///
/// An implementation checks, in this order, the signature against the gateway's published keys,
/// `typ`, `aud` and `iss`, and `exp` against the gateway's time. When it does not know the key it
/// fetches the keys again, no more often than it is willing to; it never believes a notification
/// for lack of keys. Calls may be made at the same time from any task.
public protocol NotificationVerifying: Sendable {
    /// The claims of a notification in the compact form.
    ///
    /// - Parameter serverTime: The gateway's time, in seconds since 1970.
    /// - Throws: ``VerificationFailure``.
    func verify(
        _ notification: String, serverTime: Int64
    ) async throws(VerificationFailure) -> ReloadNotification
}

/// Why a notification is not believed. Carries nothing of the notification.
public struct VerificationFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of failure it is; more may be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// Stable short name.
        public let rawValue: String

        /// A code.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Not a notification of the form asked for.
        public static let malformed = Code(rawValue: "malformed")
        /// Signed by a key that the gateway does not publish.
        public static let unknownKey = Code(rawValue: "unknown-key")
        /// Not signed by the key it names.
        public static let badSignature = Code(rawValue: "bad-signature")
        /// Made for another app.
        public static let wrongAudience = Code(rawValue: "wrong-audience")
        /// Made by another gateway.
        public static let wrongIssuer = Code(rawValue: "wrong-issuer")
        /// Its `exp` has passed.
        public static let expired = Code(rawValue: "expired")
        /// The keys could not be fetched.
        public static let keysUnavailable = Code(rawValue: "keys-unavailable")
    }

    /// What kind of failure it is.
    public let code: Code
    /// One sentence for people.
    public let message: String

    /// A failure.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// "code: message".
    public var description: String { "\(code.rawValue): \(message)" }
}
