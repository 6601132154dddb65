import WidgetModel

/// The error in a response of Firebase Cloud Messaging, or of Google's token endpoint.
package struct FCMError: Sendable, Hashable {
    /// FCM's own code, such as `UNREGISTERED`.
    package let code: String?
    /// The error of Google's services in general, such as `UNAUTHENTICATED`, or of OAuth 2.0, such
    /// as `invalid_grant`.
    package let status: String?
    /// Whether it says that the registration token is invalid, and not something else.
    package let isOfToken: Bool

    /// Reads a response; ``reason`` is `nil` if it has no error that can be read.
    package init(body: [UInt8]) {
        let error = (try? JSONValue(parsing: body).objectValue)?["error"]
        let members = error?.objectValue
        let details = members?["details"]?.arrayValue ?? []
        code = details.compactMap { Self.word($0.objectValue?["errorCode"]) }.first
        status = Self.word(members?["status"]) ?? Self.word(error)
        let fields = details.flatMap { $0.objectValue?["fieldViolations"]?.arrayValue ?? [] }
            .map { $0.objectValue?["field"]?.stringValue }
        let message = members?["message"]?.stringValue ?? ""
        isOfToken = fields.contains("message.token") || message.contains("registration token")
    }

    /// Returns a code or status; `nil` for another text, which labels and logs could not bear.
    private static func word(_ value: JSONValue?) -> String? {
        value?.stringValue.flatMap { text in
            let isWord = text.utf8.allSatisfy { $0.isLetterOrDigit || "_-.".utf8.contains($0) }
            return isWord && (1...64).contains(text.utf8.count) ? text : nil
        }
    }

    /// The more precise of both.
    package var reason: String? { code ?? status }
}
