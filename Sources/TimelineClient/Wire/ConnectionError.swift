/// Why an exchange with the gateway has no answer, or its body no end. Carries no request, token
/// or payload.
public struct ConnectionError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of failure it is; more may be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// Stable short name.
        public let rawValue: String

        /// A code.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The host has no address.
        public static let unresolved = Code(rawValue: "unresolved")
        /// Nobody accepts connections there.
        public static let unreachable = Code(rawValue: "unreachable")
        /// TLS failed: no handshake, or a certificate that is not trusted.
        public static let notTrusted = Code(rawValue: "not-trusted")
        /// No connection, or no complete answer, within the deadline.
        public static let timedOut = Code(rawValue: "timed-out")
        /// An open stream carried nothing for too long.
        public static let silent = Code(rawValue: "silent")
        /// The body is larger than the request allows.
        public static let tooLarge = Code(rawValue: "too-large")
        /// The exchange broke off, or the peer does not speak HTTP.
        public static let broken = Code(rawValue: "broken")
        /// The calling task was cancelled or the connection was closed.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The request cannot be sent as stated.
        public static let badRequest = Code(rawValue: "bad-request")
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
