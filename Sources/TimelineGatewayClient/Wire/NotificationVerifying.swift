import WidgetModel

/// Verifies that a notification was issued by the gateway.
///
/// An implementation checks, in this order, the signature against the gateway's published keys,
/// `typ`, `aud` and `iss`, and `exp` against the gateway's time. If it does not know the key, it
/// fetches the keys again, at a limited rate; missing keys never lead to acceptance. Calls may be
/// made concurrently from any task.
public protocol NotificationVerifying: Sendable {
    /// Verifies a notification in compact serialization and returns its claims.
    ///
    /// - Parameter serverTime: The gateway's time, in seconds since 1970.
    /// - Throws: ``VerificationFailure``.
    func verify(
        _ notification: String, serverTime: Int64
    ) async throws(VerificationFailure) -> ReloadNotification
}

/// The reason why a notification failed verification. Contains nothing of the notification.
public struct VerificationFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The stable short name.
        public let rawValue: String

        /// Creates a code.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The text is not a notification in the required format.
        public static let malformed = Code(rawValue: "malformed")
        /// The notification is signed by a key that the gateway does not publish.
        public static let unknownKey = Code(rawValue: "unknown-key")
        /// The notification is not signed by the key it names.
        public static let badSignature = Code(rawValue: "bad-signature")
        /// The notification was issued for another app.
        public static let wrongAudience = Code(rawValue: "wrong-audience")
        /// The notification was issued by another gateway.
        public static let wrongIssuer = Code(rawValue: "wrong-issuer")
        /// The notification's `exp` has passed.
        public static let expired = Code(rawValue: "expired")
        /// The keys could not be fetched.
        public static let keysUnavailable = Code(rawValue: "keys-unavailable")
    }

    /// The kind of failure.
    public let code: Code
    /// A sentence for display.
    public let message: String

    /// Creates an error.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// No published key has the name in the notification.
    public static let unknownKey = VerificationFailure(
        .unknownKey, "the gateway publishes no key with its kid")
    /// The named key did not sign the notification.
    public static let badSignature = VerificationFailure(
        .badSignature, "the signature does not verify")

    /// The code and the message: "code: message".
    public var description: String { "\(code.rawValue): \(message)" }
}
