import GatewayOperations
import Testing
import WidgetModel

@testable import GatewayServer

/// The configuration that the dashboard shows.
@Suite struct ShownConfigurationTests {
    private func options(_ lines: [String]) throws -> JSONObject {
        let file = try temporaryFile(
            ([
                "data: /tmp/data", "publicURL: https://gateway.test", "localIssuer: true",
                "tls: { certificate: a.pem, key: b.pem }",
            ] + lines).joined(separator: "\n"))
        let configuration = try GatewayConfiguration(
            ConfigurationLayers(file: file, flags: [:], environment: [:]))
        return try #require(configuration.shown.options.objectValue)
    }

    @Test func `push budgets and intervals are shown where anything is pushed`() throws {
        let options = try options([
            "webhooks: { enabled: true }",
            "push:", "  widgetsPerDay: 24", "  activitiesPerDay: 100", "  interval: 10m",
            "  intervals: [{ kind: com.mygame.quests, interval: 1h }]",
        ])
        #expect(options["push.widgetsPerDay"] == 24 && options["push.backgroundPerDay"] == 24)
        #expect(options["push.activitiesPerDay"] == 100)
        #expect(options["push.quietActivitiesPerDay"] == 1_440)
        #expect(options["push.interval"] == "600 s")
        #expect(options["push.intervals.com.mygame.quests"] == "3600 s")
        #expect(options["file"]?.stringValue?.hasSuffix(".yaml") == true)
        #expect(try self.options([])["push.interval"] == nil)
    }
}
