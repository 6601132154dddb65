import Foundation
import GatewayCore
import GatewayPush
import Testing

@testable import GatewayEngine

@Suite struct PushPageTests {
    /// The page must explain every word that an operator reads in a metric, a table or a log.
    @Test func `the page of pushes says what every outcome, reason and event means`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(
                path: "Deploy/push.md")
        let page = try String(contentsOf: file, encoding: .utf8)
        let words =
            PushOutcome.allCases.map(\.rawValue)
            + PushAlert.allCases.map(\.rawValue)
            + APNsOutcome.Failure.allCases.map(\.rawValue) + Self.reasons + Self.own
        for word in words { #expect(page.contains("`\(word)`"), "\(word)") }
    }

    /// APNs' reasons that this program knows (Apple, Handling notification responses from APNs).
    private static let reasons = [
        "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority",
        "BadTopic", "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout",
        "InvalidPushType", "MissingDeviceToken", "MissingTopic", "PayloadEmpty", "TopicDisallowed",
        "BadCertificate", "BadCertificateEnvironment", "ExpiredProviderToken", "Forbidden",
        "InvalidProviderToken", "MissingProviderToken", "UnrelatedKeyIdInToken",
        "BadEnvironmentKeyIdInToken", "BadPath", "MethodNotAllowed", "ExpiredToken",
        "Unregistered", "PayloadTooLarge", "TooManyProviderTokenUpdates", "TooManyRequests",
        "InternalServerError", "ServiceUnavailable", "Shutdown",
    ]

    /// Reasons of this program itself.
    private static let own = [
        "NotSent", "NotConfigured", "BadToken", "BadURL", "NotSigned", "410", "unresolved",
        "address-not-allowed", "unreachable", "not-sent", "not-trusted", "busy",
        "closed", "cancelled", "no-memory", "bad-request",
    ]
}
