import APNsSimulator
import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// The push alerts fire because of rejections by APNs and webhooks, and because of budgets.
    @Suite struct PushAlertTests {
        private static let pushes = "timeline_gateway_pushes_total"

        private static func sum(_ page: MetricsHistory.Page, _ name: String) -> Double {
            page.reduce(0) { $1.key.hasPrefix(name) ? $0 + $1.value : $0 }
        }

        private static func check(
            _ pages: [MetricsHistory.Page], minutes: Int, _ alert: String
        ) throws {
            var history = MetricsHistory()
            for (place, page) in pages.enumerated() {
                let isLast = place == pages.count - 1
                if isLast { history.expect([]) }
                history.hold(page, minutes: isLast ? minutes : 5)
            }
            history.expect([alert])
            #expect(try history.faults() == "")
        }

        /// Runs `body` with registered devices and a function that reads the metrics.
        private static func withDevices(
            _ count: Int, options: [String] = [],
            _ body: (PushFixture, () throws -> MetricsHistory.Page) async throws -> Void
        ) async throws {
            let world = try PushFixture(options: options, admin: GatewayProcess.freeAddress())
            let admin = world.gateway.adminHTTP()
            for index in 0..<count {
                try world.register(
                    "phone\(index)", ["hero"], token: "aa" + String(format: "%04x", index))
            }
            try await body(world) {
                MetricsHistory.page(try admin.request("GET", "/metrics").text)
            }
            await world.stop()
        }

        @Test func `a topic that APNs refuses`() async throws {
            try await Self.withDevices(1) { world, page in
                world.apns.script("aa0000", [.refused(.topicDisallowed)])
                let before = try page()
                try world.change(["hero"], run: "one")
                try await world.until("refused") { $0.requests >= 1 }
                var after = before
                while Self.sum(after, "timeline_gateway_push_events_total") == 0 {
                    try await Task.sleep(for: .milliseconds(100))
                    after = try page()
                }
                try Self.check([before, after], minutes: 10, "PushStopped")
            }
        }

        @Test func `devices whose budget is spent`() async throws {
            try await Self.withDevices(
                20, options: ["widgetsPerDay: 1", "interval: 1s"]
            ) { world, page in
                try world.change(["hero"], run: "one")
                try await world.until("pushed to") { $0.taken == 20 }
                let before = try page()
                try world.change(["hero"], run: "two")
                var after = before
                let withheld = "timeline_gateway_push_standings{state=\"withheld\"}"
                for _ in 0..<300 where after[withheld] ?? 0 < 20 {
                    try await Task.sleep(for: .milliseconds(100))
                    after = try page()
                }
                #expect(after[withheld] == 20)
                try Self.check([before, after], minutes: 40, "PushBudgetSpent")
            }
        }

        @Test(arguments: [(10, "PushCertificateEndsSoon"), (2, "PushCertificateEnds")])
        func `a certificate for pushes that ends`(days: Int, alert: String) throws {
            let watched = try WatchedGateway()
            defer { watched.remove() }
            let pushed = try PushCertificate(
                app: GameFixture.app, ca: watched.folder + "/certs/ca.pem", days: days)
            // A running gateway gets another app in its configuration.
            try WatchedGateway.write(
                [
                    "apns: [{ app: \(GameFixture.app), certificate: \(pushed.certificate), "
                        + "certificateKey: \(pushed.key) }]"
                ], in: watched.folder)
            let name = "timeline_gateway_apns_certificate_not_after_seconds"
            var history = MetricsHistory()
            history.hold(
                try watched.page { page in page.keys.contains { $0.hasPrefix(name) } },
                minutes: 70)
            history.expect([alert])
            #expect(try history.faults() == "")
        }

        @Test(arguments: [
            ("410", 1, "PushEvents"), ("500", 25, "PushesFail"),
        ])
        func `webhooks that refuse`(status: String, clients: Int, alert: String) throws {
            let folder = try GatewayProcess.temporaryDirectory()
            let ranges = "webhooks: { enabled: true, allowedRanges: [127.0.0.0/8]"
            let watched = try WatchedGateway([ranges + " }"])
            defer { watched.remove() }
            let certificates = watched.folder + "/certs"
            try WatchedGateway.write(
                [ranges + ", ca: \(certificates)/ca.pem }"], in: watched.folder)
            try watched.gateway.restart()
            let receiver = try WebhookReceiver(
                in: folder, certificate: certificates + "/server.pem",
                key: certificates + "/server.key", status: status)
            let game = try GameFixture(watched.gateway)
            for index in 0..<clients {
                let answer = try receiver.register(
                    "renderer\(index)", at: "/hook", on: watched.gateway, token: game.backend)
                #expect(answer.status == 201, "\(answer.text)")
            }
            let before = try watched.page()
            try game.change(watched.gateway.http(), ["hero"], run: "one")
            // The first attempts create the series; the second ones, 5 s later, make it grow.
            let first = try watched.page { Self.sum($0, Self.pushes) >= Double(clients) }
            let second =
                clients == 1
                ? first
                : try watched.page { Self.sum($0, Self.pushes) >= Double(2 * clients) }
            try Self.check(
                clients == 1 ? [before, first] : [before, first, second], minutes: 15, alert)
        }
    }
}
