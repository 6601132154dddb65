import Foundation
import GatewayServer
import GatewayTelemetry
import Testing

@testable import GatewayEngine

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
