/// The reason why an exchange with the gateway has no response, or an incomplete body. Contains no
/// request, token or payload.
public struct ConnectionError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of failure. More kinds may be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The stable short name.
        public let rawValue: String

        /// Creates a code.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The host name has no address.
        public static let unresolved = Code(rawValue: "unresolved")
        /// No server accepts connections at the address.
        public static let unreachable = Code(rawValue: "unreachable")
        /// TLS failed: the handshake was incomplete, or the certificate is not trusted.
        public static let notTrusted = Code(rawValue: "not-trusted")
        /// No connection, or no complete response, within the timeout.
        public static let timedOut = Code(rawValue: "timed-out")
        /// An open stream was silent for too long.
        public static let silent = Code(rawValue: "silent")
        /// The body is larger than the request allows.
        public static let tooLarge = Code(rawValue: "too-large")
        /// The exchange broke off, or the peer does not speak HTTP.
        public static let broken = Code(rawValue: "broken")
        /// The calling task was cancelled, or the connection was closed.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The request is invalid and cannot be sent.
        public static let badRequest = Code(rawValue: "bad-request")
        /// The app could not state what it wants registered, so nothing was sent.
        public static let noRegistration = Code(rawValue: "no-registration")
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

    /// The code and the message: "code: message".
    public var description: String { "\(code.rawValue): \(message)" }
}
