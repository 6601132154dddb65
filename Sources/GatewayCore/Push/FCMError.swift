import WidgetModel

/// The error in a response of Firebase Cloud Messaging, or of Google's token endpoint.
package struct FCMError: Sendable, Hashable {
    /// FCM's own code, such as `UNREGISTERED`.
    package let code: String?
    /// The error of Google's services in general, such as `UNAUTHENTICATED`, or of OAuth 2.0, such
    /// as `invalid_grant`.
    package let status: String?

    /// Reads a response; both are `nil` if it has no error that can be read.
    package init(body: [UInt8]) {
        let error = (try? JSONValue(parsing: body).objectValue)?["error"]
        let members = error?.objectValue
        let details = members?["details"]?.arrayValue ?? []
        code = details.compactMap { $0.objectValue?["errorCode"]?.stringValue }.first
        status = members?["status"]?.stringValue ?? error?.stringValue
    }

    /// The more precise of both.
    package var reason: String? { code ?? status }
}
