import Foundation
import GatewayCore
import GatewayServer
import GatewayTelemetry
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

@Suite struct ReferencePageTests {
    @Test(arguments: ReferencePage.allCases)
    func `the file in Deploy is what the program says`(page: ReferencePage) throws {
        let deploy = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Deploy")
        let text = try String(
            contentsOf: deploy.appending(path: "\(page.rawValue).md"), encoding: .utf8)
        #expect(
            text == page.markdown,
            "timeline-gateway reference \(page.rawValue) > Deploy/\(page.rawValue).md")
    }

    @Test func `every metric has a name of its own, a bound and a sentence`() {
        let families = MetricFamily.gateway
        #expect(Set(families.map(\.sampleName)).count == families.count)
        for family in families {
            #expect(family.help.hasSuffix(".") || family.help.hasSuffix("`."), "\(family.name)")
            #expect(family.seriesMax <= 20_000, "\(family.name)")
        }
    }
}
