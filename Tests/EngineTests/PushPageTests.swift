import Foundation
import GatewayCore
import Testing

@testable import GatewayEngine

@Suite struct PushPageTests {
    /// An operator reads these words in metrics, tables and logs.
    @Test func `the page of pushes says what every outcome, cause, alert and failure means`() throws
    {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(
                path: "Deploy/push.md")
        let page = try String(contentsOf: file, encoding: .utf8)
        let words =
            PushOutcome.allCases.map(\.rawValue) + PushAlert.allCases.map(\.rawValue)
            + APNsOutcome.Failure.allCases.map(\.rawValue) + PushCause.allCases.map(\.rawValue)
            + ContentFailure.allCases.map(\.rawValue)
        for word in words { #expect(page.contains("`\(word)`"), "\(word)") }
    }
}
