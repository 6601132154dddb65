import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// Each alert of `Deploy/observability` fires for its own cause, and no other alert fires with
    /// it; promtool evaluates the metrics of running gateways. Where the cause would take hours, or
    /// a broken disk, the test extrapolates the scraped samples and says so.
    @Suite struct AlertTests {
        private static let prefix = "timeline_gateway_"

        /// Checks that no alert fires with the page `before`, and exactly `alerts` with the page
        /// `after`.
        private static func check(
            _ before: MetricsHistory.Page, _ after: MetricsHistory.Page, minutes: Int = 15,
            _ alerts: String...
        ) throws {
            var history = MetricsHistory()
            history.hold(before, minutes: 5)
            history.expect([])
            history.hold(after, minutes: minutes)
            history.expect(alerts)
            #expect(try history.faults() == "")
        }

        /// Runs `body` with a gateway whose client was notified of a change on a stream and
        /// confirmed it.
        private static func used(
            _ options: [String] = [], days: Int = 60,
            _ body: (WatchedGateway, GameFixture) throws -> Void
        ) throws {
            let watched = try WatchedGateway(options, days: days)
            defer { watched.remove() }
            let game = try GameFixture(watched.gateway)
            let client = try game.client("phone", ["a"])
            let stream = game.stream(client)
            try #require(stream.head()?.status == 200)
            let head = try game.change(watched.gateway.http(), ["a"], run: "used")
            var last = ""
            while try last.isEmpty || Cursor.sequence(last) < head {
                guard case .block(let block) = stream.next(timeout: 40) else {
                    throw TestFailure("the stream ended")
                }
                if let id = block.id { last = id }
            }
            try FreshnessTests.acknowledge(watched.gateway, client, last, ["a"])
            try body(watched, game)
            stream.close()
        }

        @Test func `the files are right`() throws {
            let file = MetricsHistory.folder.path + "/prometheus.yml"
            let (exit, output) = try GatewayProcess.run(
                ["promtool", "check", "config", file], program: "/usr/bin/env")
            #expect(exit == .status(0), "\(output)")
        }

        @Test func `nothing fires of a gateway that does its work, and one does when it is gone`()
            throws
        {
            try Self.used { watched, game in
                let before = try watched.page()
                for round in 0..<30 {
                    try game.change(watched.gateway.http(), ["a"], run: "\(round)")
                }
                let after = try watched.page()
                var history = MetricsHistory()
                history.hold(before, minutes: 5)
                history.grow(
                    before, by: MetricsHistory.difference(before, after), minutes: 120)
                history.expect([])
                watched.gateway.kill()
                #expect(throws: (any Error).self) { try watched.page() }
                history.hold(nil, minutes: 5)
                history.expect(["Down"])
                #expect(try history.faults() == "")
            }
        }

        /// A collapse window that is longer than the objective makes every second change late.
        @Test func `notifications that are late`() throws {
            try Self.used { watched, game in
                try #require(try game.put(GameFixture.catalog(collapse: "4s")) == 200)
                let names = (0..<30).map { "hero\($0)" }
                let stream = game.stream(try game.client("other", names))
                try #require(stream.head()?.status == 200)
                let before = try watched.page()
                try game.change(watched.gateway.http(), names, run: "first")
                try game.change(watched.gateway.http(), names, run: "second")
                let count =
                    Self.prefix + "freshness_sent_seconds_count{channel=\"stream\",kind=\"detail\"}"
                let after = try watched.page { $0[count] ?? 0 >= 61 }
                try Self.check(before, after, minutes: 4, "NotificationsLate")
                stream.close()
            }
        }

        /// Stands for hours of observations, and for clients that take minutes: the observations of
        /// a running gateway are repeated each minute, and a share of them is made late.
        @Test(arguments: [
            ("sent", 2.5, 0.02, "NotificationsLateForDays"),
            ("sent", 2.5, 0.3, "NotificationsLate"),
            ("confirmed", 60, 0.08, "RebuildsLateForDays"),
            ("confirmed", 60, 0.9, "RebuildsLate"),
        ])
        func `an objective that is missed`(
            what: String, seconds: Double, late: Double, alert: String
        ) throws {
            try Self.used { watched, _ in
                let page = try watched.page()
                let bucket = Self.prefix + "freshness_\(what)_seconds_bucket{channel=\"stream\""
                var more: MetricsHistory.Page = [:]
                for (name, value) in page where name.contains("freshness_\(what)_seconds") {
                    let bound = name.split(separator: "le=\"").last?.split(separator: "\"").first
                    let isInTime = (bound.flatMap { Double($0) } ?? .infinity) <= seconds
                    more[name] =
                        name.hasPrefix(bucket) && isInTime ? value * (1 - late) : value
                }
                try #require(more.values.contains { $0 > 0 })
                var history = MetricsHistory()
                history.hold(page, minutes: 5)
                history.expect([])
                // A large share is noticed soon, a small one only after hours.
                history.grow(page, by: more, minutes: late < 0.1 ? 8 * 60 : 50)
                history.expect([alert])
                #expect(try history.faults() == "")
            }
        }

        /// No event loop can be stopped from outside, so its position is kept while the log
        /// continues. The disk cannot be made to fail either, so commits are counted as failed.
        @Test func `changes that get nowhere`() throws {
            try Self.used { watched, game in
                let before = try watched.page()
                try game.change(watched.gateway.http(), ["a", "b"], run: "more")
                let after = try watched.page()
                var stuck = after
                let position = Self.prefix + "shard_position_lowest"
                stuck[position] = before[position]
                #expect(before[position] != after[position])
                try Self.check(before, stuck, minutes: 5, "NoProgress")
                for counter in ["store_commit_failures_total", "store_jobs_refused_total"] {
                    var refusing = after
                    refusing[Self.prefix + counter] =
                        try #require(before[Self.prefix + counter]) + 3
                    try Self.check(before, refusing, minutes: 5, "WritesFail")
                }
            }
        }

        @Test func `a backup that was put back without a new epoch`() throws {
            try Self.used { watched, game in
                let client = try game.client("tablet", ["a"])
                let copy = try GatewayProcess.temporaryDirectory() + "/copy"
                try FileManager.default.copyItem(atPath: watched.folder, toPath: copy)
                try game.change(watched.gateway.http(), ["a"], run: "lost")
                let late = try game.poll(client, since: client.cursor).cursor
                watched.gateway.kill()
                // Copied into the same files, as when a volume is rolled back to a snapshot: a
                // start cannot detect that, whereas it detects a copied directory.
                let (exit, output) = try GatewayProcess.run(
                    ["-a", copy + "/.", watched.folder], program: "/bin/cp")
                try #require(exit == .status(0), "\(output)")
                try watched.gateway.start()
                let before = try watched.page()
                #expect(try game.poll(client, since: late).stale == ["everything"])
                try Self.check(before, watched.page(), "CursorsAhead")
            }
        }

        @Test func `a version window that is too small`() throws {
            try Self.used(["limits: { versionKeys: 16 }"]) { watched, game in
                let before = try watched.page()
                for round in 0..<5 {
                    try game.change(
                        watched.gateway.http(), (0..<100).map { "n\($0)" }, run: "\(round)")
                }
                try Self.check(before, watched.page(), "VersionWindowShort")
            }
        }

        @Test func `changes that hit no rule, or every client`() throws {
            try Self.used { watched, game in
                let http = watched.gateway.http()
                let before = try watched.page()
                let unknown = (0..<20).map {
                    event(source: "u", id: "\($0)", entity: "Charakter", key: "a")
                }
                let post = try http.post(unknown, app: GameFixture.app, token: game.backend)
                #expect(post.status == 202, "\(post.text)")
                try game.change(http, (0..<20).map { "n\($0)" }, run: "good")
                let unmatched = try watched.page()
                try Self.check(before, unmatched, "ChangesUnmatched")
                let bare = (0..<20).map { id -> JSONValue in
                    [
                        "specversion": "1.0", "type": "changed", "source": "b",
                        "id": .string("\(id)"), "data": ["entity": "Character"],
                    ]
                }
                let broad = try http.post(bare, app: GameFixture.app, token: game.backend)
                #expect(broad.status == 202, "\(broad.text)")
                try Self.check(unmatched, watched.page(), "ChangesBroad")
            }
        }

        @Test func `streams that take nothing`() throws {
            try Self.used(["streams: { stall: 3s }"]) { watched, game in
                let names = (0..<200).map { "hero\($0)" }
                let streams = try (0..<12).map { number in
                    game.stream(
                        try game.client("slow\(number)", names), receiveBufferBytes: 4_096)
                }
                for stream in streams {
                    try #require(stream.head()?.status == 200)
                    stream.stopReading()
                }
                let before = try watched.page()
                let http = watched.gateway.http()
                var after = before
                let stalled = Self.prefix + "streams_stalled_total"
                for round in 0..<200 where after[stalled] ?? 0 < 12 {
                    try game.change(http, names, run: "round\(round)")
                    if round % 20 == 19 { after = try watched.page() }
                }
                try Self.check(before, after, "StreamsStall")
                for stream in streams { stream.close() }
            }
        }

        @Test(arguments: [(10, "CertificateEndsSoon"), (2, "CertificateEnds")])
        func `a certificate that ends`(days: Int, alert: String) throws {
            try Self.used(days: days) { watched, _ in
                var history = MetricsHistory()
                history.hold(try watched.page(), minutes: 70)
                history.expect([alert])
                #expect(try history.faults() == "")
            }
        }

        /// Half a year later.
        @Test func `a signing key that is old`() throws {
            try Self.used { watched, _ in
                let before = try watched.page()
                var after = before
                after[Self.prefix + "signing_key_age_seconds", default: 0] += 181 * 86_400
                try Self.check(before, after, minutes: 70, "SigningKeyOld")
            }
        }

        /// A canary that stopped leaves its last page, which grows old.
        @Test func `a canary whose changes are not told, or that stopped`() throws {
            try Self.used { watched, _ in
                let gateway = watched.gateway
                let token = try gateway.token(
                    app: GameFixture.app, scope: "catalog:write changes:write client",
                    sub: "timeline-canary")
                let file = watched.folder + "/canary.prom"
                let run = try GatewayProcess.run(
                    [
                        "canary", "--once", "--url", gateway.url, "--ca", gateway.ca, "--token",
                        token, "--app", GameFixture.app, "--textfile", file,
                    ], program: GatewayProcess.program(named: "timelinectl"))
                try #require(run.exit == .status(0), "\(run.output)")
                let canary = MetricsHistory.page(
                    try String(contentsOfFile: file, encoding: .utf8))
                let well = try watched.page().merging(canary) { $1 }
                var old = well
                for name in well.keys where name.contains("last_confirmed") {
                    old[name, default: 0] -= 600
                }
                #expect(well != old)
                try Self.check(well, old, minutes: 5, "CanaryLost")
                let up = "timeline_canary_up{app=\"\(GameFixture.app)\"}"
                #expect(well[up] == 1)
                var lost = well
                lost[up] = 0
                try Self.check(well, lost, minutes: 5, "CanaryLost")
            }
        }

        /// An auditor that stopped leaves its last page, which grows old.
        @Test func `an auditor that misses its objective, or that stopped`() throws {
            try Self.used { watched, _ in
                let gateway = watched.gateway
                let token = try gateway.token(
                    app: GameFixture.app, scope: "catalog:write changes:write client",
                    sub: "timeline-canary")
                let file = watched.folder + "/audit.prom"
                let run = try GatewayProcess.run(
                    [
                        "canary", "--audit", "--for", "2", "--interval", "1", "--url", gateway.url,
                        "--ca", gateway.ca, "--token", token, "--app", GameFixture.app,
                        "--textfile", file,
                    ], program: GatewayProcess.program(named: "timelinectl"))
                try #require(run.exit == .status(0), "\(run.output)")
                let audit = MetricsHistory.page(
                    try String(contentsOfFile: file, encoding: .utf8))
                let well = try watched.page().merging(audit) { $1 }
                var old = well
                for name in well.keys where name.contains("audit_last_run") {
                    old[name, default: 0] -= 600
                }
                #expect(well != old)
                try Self.check(well, old, minutes: 5, "AuditBelowObjective")
                let reliability = "timeline_audit_reliability_ratio{app=\"\(GameFixture.app)\"}"
                #expect(well[reliability] == 1)
                var below = well
                below[reliability] = 0.99
                try Self.check(well, below, minutes: 5, "AuditBelowObjective")
            }
        }

        @Test func `a configuration that is wrong`() throws {
            try Self.used { watched, _ in
                let before = try watched.page()
                try WatchedGateway.write(["log: { level: lots }"], in: watched.folder)
                let refused = Self.prefix + "configuration_reloads_total{outcome=\"refused\"}"
                let after = try watched.page { $0[refused] ?? 0 > 0 }
                try Self.check(before, after, "ConfigurationRefused")
            }
        }
    }
}
