import CatalogModel
import GatewayCore
import GatewayDocuments
import GatewayTelemetry
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

@Suite struct RingTests {
    @Test func `it has the latest, as a list that forgets its first would`() {
        var random = SplitMix64(seed: 11)
        for countMax in [1, 2, 3, 7, 64] {
            var ring = Ring<Int>(countMax: countMax)
            var model: [Int] = []
            #expect(ring.last == nil && ring.before(0) == nil)
            for number in 0..<200 {
                ring.append(number)
                model = (model + [number]).suffix(countMax)
                #expect(ring.elements == model && ring.last == model.last)
                #expect(ring.count == model.count)
                let back = Int.random(in: 0...100, using: &random)
                #expect(ring.before(back) == model[max(0, model.count - 1 - back)])
            }
        }
    }
}

@Suite struct HistogramCountsTests {
    private func counts(_ counts: [UInt64]) -> HistogramCounts {
        HistogramCounts(bounds: [1, 2, 4], counts: counts)
    }

    @Test func `a percentile lies in its bucket as far as its rank`() {
        #expect(counts([0, 0, 0, 0]).percentile(0.5) == nil)
        #expect(counts([10, 0, 0, 0]).percentile(0.5) == 0.5)
        #expect(counts([0, 10, 0, 0]).percentile(0.5) == 1.5)
        #expect(counts([50, 40, 10, 0]).percentile(0.5) == 1)
        #expect(counts([50, 40, 10, 0]).percentile(0.95) == 3)
        #expect(counts([50, 40, 10, 0]).percentile(1) == 4)
        #expect(counts([0, 0, 10, 0]).percentile(0) == 2)
    }

    @Test func `above the highest bound nothing is known but the bound`() {
        #expect(counts([1, 0, 0, 99]).percentile(0.5) == 4)
        #expect(HistogramCounts(bounds: []).percentile(0.5) == nil)
        #expect(HistogramCounts(bounds: [], counts: [3]).percentile(0.5) == nil)
    }

    /// Observations within one bucket cannot be told apart: an estimate errs by less than its
    /// width.
    @Test func `percentiles are those of what was observed, within a bucket`() throws {
        var random = SplitMix64(seed: 5)
        let bounds = (1...40).map { Double($0) }
        for _ in 0..<100 {
            let observed = (0..<Int.random(in: 1...300, using: &random)).map { _ in
                Double.random(in: 0...39, using: &random)
            }.sorted()
            var counts = Array(repeating: UInt64(0), count: 41)
            for value in observed { counts[bounds.firstIndex { value <= $0 } ?? 40] += 1 }
            let histogram = HistogramCounts(bounds: bounds, counts: counts)
            for share in [0.01, 0.5, 0.9, 0.99, 1] {
                let rank = max(1, (share * Double(observed.count)).rounded(.up))
                let exact = observed[Int(rank) - 1]
                let said = try #require(histogram.percentile(share))
                #expect(abs(said - exact) <= 1, "\(share) of \(observed.count)")
            }
        }
    }

    @Test func `what came since is the difference, and a restart begins anew`() {
        #expect(counts([5, 5, 5, 5]).since(counts([1, 2, 3, 4])) == counts([4, 3, 2, 1]))
        #expect(counts([5, 5, 5, 5]).since(nil) == counts([5, 5, 5, 5]))
        #expect(counts([1, 0, 0, 0]).since(counts([5, 0, 0, 0])) == counts([0, 0, 0, 0]))
        let other = HistogramCounts(bounds: [1], counts: [1, 1])
        #expect(counts([1, 1, 1, 1]).since(other) == counts([1, 1, 1, 1]))
        var sum = counts([1, 1, 1, 1])
        sum.add(counts([0, 1, 2, 3]))
        sum.add(other)
        #expect(sum == counts([1, 2, 3, 4]) && sum.total == 10)
    }
}

@Suite struct OverviewSeriesTests {
    private func sample(_ place: Int) -> OverviewSample {
        let bounds = [1.0, 2]
        var sample = OverviewSample(
            at: Int64(place) * 5_000, decided: HistogramCounts(bounds: bounds),
            commitSeconds: HistogramCounts(bounds: bounds))
        sample.counts.changes = UInt64(place * 10)
        sample.streams = place
        sample.sent[.stream] = HistogramCounts(bounds: bounds, counts: [UInt64(place), 0, 0])
        return sample
    }

    private func json(_ series: OverviewSeries) throws -> JSONObject {
        try JSONValue(encoding: series.document).objectValue ?? [:]
    }

    @Test func `there is a number for each sample but the first, and none where nothing was sent`()
        throws
    {
        let json = try self.json(OverviewSeries((0..<4).map(sample), pointSamples: 2))
        #expect(json["at"] == [5_000, 10_000, 15_000])
        #expect(json["changes"] == [.number(2), .number(2), .number(2)])
        #expect(json["streams"] == [.number(1), .number(2), .number(3)])
        #expect(json["decided"]?.objectValue?["p50"] == [.null, .null, .null])
        #expect(
            json["sent"]?.objectValue?["stream"]?.objectValue?["p50"]
                == [.number(0.5), .number(0.5), .number(0.5)])
        #expect(json["withheld"] == [.null, .null, .null])
    }

    @Test func `only what came later is said to who has the rest`() throws {
        let samples = (0..<6).map(sample)
        let json = try self.json(OverviewSeries(samples, after: 15_000, pointSamples: 2))
        #expect(json["at"] == [20_000, 25_000])
        #expect(json["changes"] == [.number(2), .number(2)])
        let none = try self.json(OverviewSeries(samples, after: 99_000, pointSamples: 2))
        #expect(none["at"] == [])
        #expect(try self.json(OverviewSeries([], pointSamples: 2))["at"] == [])
    }
}

@Suite struct HealthIssueTests {
    /// Returns the health issues of a healthy gateway after `change`.
    private func look(_ change: (inout HealthSnapshot) -> Void = { _ in }) -> [HealthIssue] {
        var health = Health()
        let verdict = health.judge(
            Health.Snapshot(
                isServing: true, head: 0, loops: 0, pushes: nil, commits: 0, failedCommits: 0,
                isDiskRefusing: false, waitingWrites: 0, certificateEnds: 10), now: 0,
            wallSeconds: 0)
        let sample = OverviewSample(
            at: 0, decided: HistogramCounts(bounds: []), commitSeconds: HistogramCounts(bounds: []))
        var look = HealthSnapshot(verdict: verdict, now: sample)
        look.now.streams = 100
        look.recent.changes = 100
        change(&look)
        return look.troubles
    }

    @Test func `nothing is wrong with a gateway that does well`() {
        #expect(look().isEmpty)
    }

    @Test func `every part that fails is named, and the worst comes first`() {
        let troubles = look { look in
            look.verdict.notReady = Health.Part.allCases
            look.recent.unmatched = 50
            look.certificateSeconds = -1
        }
        #expect(troubles.count == Health.Part.allCases.count + 1)
        #expect(troubles.dropLast().allSatisfy { $0.level == .critical })
        #expect(troubles.last?.level == .warning)
    }

    @Test(
        arguments: [
            (15, nil), (13, .warning), (2, .critical), (0, .critical),
        ] as [(Int64, HealthIssue.Level?)])
    func `a certificate is renewed in time`(days: Int64, level: HealthIssue.Level?) {
        let troubles = look { $0.certificateSeconds = days * 86_400 + 60 }
        #expect(troubles.map(\.level) == (level.map { [$0] } ?? []))
    }

    @Test(
        arguments: [
            (15, nil), (13, .warning), (2, .critical), (0, .critical), (-1, .critical),
        ] as [(Int64, HealthIssue.Level?)])
    func `a certificate for pushes is renewed in time`(days: Int64, level: HealthIssue.Level?) {
        let troubles = look {
            $0.pushCertificates = ["com.mygame": days * 86_400 + 60, "other": .max]
        }
        #expect(troubles.map(\.level) == (level.map { [$0] } ?? []))
        #expect(troubles.allSatisfy { $0.what.contains("com.mygame") })
        #expect(troubles.contains { $0.what.contains("has expired") } == (days < 0))
    }

    @Test func `a share of few says nothing`() {
        let few = look {
            $0.recent.changes = 19
            $0.recent.unmatched = 19
            $0.sent[.stream] = HistogramCounts(bounds: [1, 60], counts: [0, 19, 0])
        }
        #expect(few.isEmpty)
        let enough = look {
            $0.recent.changes = 20
            $0.recent.unmatched = 20
            $0.recent.broad = 20
            $0.sent[.stream] = HistogramCounts(bounds: [1, 60], counts: [0, 20, 0])
        }
        #expect(enough.count == 3 && enough.first?.level == .critical)
    }

    @Test func `a node of a cluster names the database, and not its disk`() {
        let away = look {
            $0.verdict.notReady = [.log]
            $0.cluster = ClusterState(objection: "no server answers")
        }
        #expect(away.count == 1 && away.first?.level == .critical)
        #expect(away.first?.what.contains("cluster") == true)
        #expect(away.first?.what.hasSuffix(": no server answers.") == true)
        let silent = look {
            $0.cluster = ClusterState(objection: nil, silence: "10.0.0.1:9443: connection refused")
        }
        #expect(silent.map(\.level) == [.critical])
        #expect(silent.first?.what.contains("10.0.0.1:9443: connection refused") == true)
        let foreign = look {
            $0.recent.cursorsAhead = 1
            $0.cluster = ClusterState(objection: nil)
        }
        #expect(foreign.map(\.level) == [.warning])
        #expect(foreign.first?.remedy.contains("epoch new") == false)
    }

    @Test func `a rejected configuration is named with its first fault`() {
        var faults = Faults("push.apns", "is unknown")
        faults.add("tls.key", "does not exist")
        let troubles = look { $0.configurationFaults = faults }
        #expect(troubles.map(\.level) == [.warning])
        #expect(troubles.first?.what.contains("push.apns: is unknown (and 1 more)") == true)
        #expect(troubles.first?.page == "/system")
    }

    @Test func `addresses that failed are named, and lead to where they are seen`() throws {
        var small = try SmallHealthPushes()
        let gone = try small.answer("phone", 410)
        let troubles = look { $0.now.standings = gone }
        #expect(
            troubles.map(\.what) == [
                "A webhook answered 410 Gone and is disabled: that of phone (com.mygame)."
            ])
        #expect(troubles.first?.page == "/clients/com.mygame/phone")
        let more = try small.answer("tablet", 410)
        #expect(look { $0.now.standings = more }.first?.page == "/deliveries?app=com.mygame")
        let stopped = look {
            var counts = PushScheduler.StatusCounts()
            counts.stoppedApps = ["com.mygame"]
            $0.now.standings = counts
        }
        #expect(stopped.map(\.level) == [.critical])
        #expect(stopped.first?.page == "/deliveries?app=com.mygame")
    }

    @Test func `what else can be wrong is said`() {
        #expect(look { $0.connectionWaits = 1 }.map(\.level) == [.critical])
        #expect(look { $0.now.lagging = 10 }.count == 1)
        #expect(look { $0.now.lagging = 5 }.isEmpty)
        #expect(look { $0.recent.commitFailures = 1 }.first?.level == .critical)
        #expect(look { $0.recent.cursorsAhead = 1 }.first?.level == .critical)
        #expect(look { $0.recent.writesRefused = 1 }.count == 1)
        #expect(
            look {
                $0.recent.pushesSent = 10
                $0.recent.pushesFailed = 10
            }.count == 1)
        #expect(
            look {
                var statusCounts = PushScheduler.StatusCounts()
                statusCounts.withheld = 20
                statusCounts.unreachable = 20
                $0.now.standings = statusCounts
            }.count == 2)
        #expect(
            look {
                // A few of many are no problem, and a few of few are.
                var statusCounts = PushScheduler.StatusCounts()
                (statusCounts.withheld, statusCounts.confirmed) = (5, 8)
                (statusCounts.unreachable, statusCounts.told) = (2, 10)
                $0.now.standings = statusCounts
            }.map(\.what) == [
                "5 of 25 push subscriptions (20 %) wait for their device's push budget."
            ])
        let window = HealthSnapshot.Window(app: "com.mygame", keys: 95, keysMax: 100, distance: 7)
        #expect(look { $0.windows = [window] }.first?.what.contains("com.mygame") == true)
    }
}

/// A push scheduler whose clients have a webhook each.
private struct SmallHealthPushes {
    private var scheduler: PushScheduler
    private var head: UInt64 = 1
    private let ruleSet: RuleSet

    init() throws {
        let catalog = try Catalog(
            [
                "app": "com.mygame", "entities": ["E": [:]],
                "widgets": [
                    ["kind": "k", "configuration": "static", "dependsOn": [["entity": "E"]]]
                ],
            ], app: "com.mygame", limits: Limits())
        let hash = SipHash(1, 2)
        var decider = Decider(hash: hash, limits: Limits())
        ruleSet = decider.install(catalog, at: 1)
        scheduler = PushScheduler(Shard(floor: 0), terms: PushScheduler.Terms(), hash: hash)
        apply(.catalog(ruleSet))
    }

    private mutating func apply(_ body: LogEntry.Body) {
        scheduler.apply(
            LogEntry(
                sequence: head, app: "com.mygame", acceptedAt: 1, urgency: .normal, body: body),
            now: 1)
    }

    /// Registers a client, and answers the push for a change with a status.
    mutating func answer(_ client: String, _ status: Int) throws -> PushScheduler.StatusCounts {
        let widget = ConfiguredWidget(kind: "k", family: "systemSmall")
        scheduler.registered(
            ClientRecord(
                client: client,
                registration: ClientRegistration(
                    platform: "linux", widgets: [widget],
                    delivery: [.webhook(url: "https://\(client).example")]),
                attributes: .init(), since: head), app: "com.mygame", now: 1)
        head += 1
        apply(.change(try ruleSet.decide(Change(entity: "E"), limits: Limits()), cause: nil))
        for case .push(let order) in scheduler.takeActions() {
            scheduler.finished(order.number, .webhook(.status(status)), now: 1, random: 0)
        }
        return scheduler.statusCounts(now: 1)
    }
}

@Suite struct AppCensusTests {
    private func record(_ name: String, _ kinds: [String]) -> ClientRecord {
        let widgets = kinds.map { ConfiguredWidget(kind: $0, family: "systemSmall", count: 2) }
        return ClientRecord(
            client: name, registration: ClientRegistration(platform: "iOS", widgets: widgets),
            attributes: .init())
    }

    @Test func `all are counted, and every client is as likely to be picked as any other`() {
        var random = SplitMix64(seed: 3)
        var picked: [String: Int] = [:]
        for _ in 0..<400 {
            var statusCounts = AppCensus()
            for number in 0..<80 {
                statusCounts.count(
                    ClientKey(app: "a", client: "\(number)"), record("\(number)", ["one", "two"]),
                    using: &random)
            }
            #expect(statusCounts.clients == 80 && statusCounts.widgets == ["one": 160, "two": 160])
            #expect(Set(statusCounts.picks).count == AppCensus.picksMax)
            for key in statusCounts.picks { picked[key.client, default: 0] += 1 }
        }
        // Of 400 numbers each is expected 200 times, with a standard deviation of 10.
        #expect(picked.count == 80 && picked.values.allSatisfy { (140...260).contains($0) })
    }

    @Test func `clients that no change reaches are counted by kind`() throws {
        let catalog = try Catalog(
            [
                "app": "a", "entities": ["E": [:]],
                "widgets": [
                    [
                        "kind": "one", "configuration": "static",
                        "dependsOn": [["entity": "E", "match": ["a": "$client.account"]]],
                    ],
                    ["kind": "two", "configuration": "static", "dependsOn": [["entity": "E"]]],
                ],
            ], app: "a", limits: Limits())
        var census = AppCensus(
            RuleSet(catalog, sequence: 1, replacing: nil, hash: SipHash(1, 2)))
        var random = SplitMix64(seed: 3)
        let widgets = ["one", "one", "two"].map {
            ConfiguredWidget(kind: $0, family: "systemSmall")
        }
        for (name, attribute) in [("x", "account"), ("y", "acount"), ("z", "acount")] {
            let record = ClientRecord(
                client: name, registration: ClientRegistration(platform: "iOS", widgets: widgets),
                attributes: ClientAttributes(backend: [attribute: ["1"]]))
            census.count(ClientKey(app: "a", client: name), record, using: &random)
        }
        #expect(census.lacking == ["one": 2])
    }

    @Test func `no count of a client's is too large to be added`() {
        var random = SplitMix64(seed: 3)
        var statusCounts = AppCensus()
        for name in ["a", "b"] {
            let widget = ConfiguredWidget(kind: "one", family: "systemSmall", count: .max)
            let record = ClientRecord(
                client: name, registration: ClientRegistration(platform: "iOS", widgets: [widget]),
                attributes: .init())
            statusCounts.count(ClientKey(app: "a", client: name), record, using: &random)
        }
        #expect(statusCounts.widgets == ["one": .max])
    }

    @Test func `of what is stale the oldest is said`() {
        var kind = KindFreshness()
        kind.count(isStale: false, since: nil)
        kind.count(isStale: true, since: nil)
        #expect(kind.looked == 2 && kind.stale == 1 && kind.since == nil)
        kind.count(isStale: true, since: "2026-01-02T00:00:00.000Z")
        kind.count(isStale: true, since: "2026-01-01T00:00:00.000Z")
        kind.count(isStale: true, since: "2026-01-03T00:00:00.000Z")
        #expect(kind.stale == 4 && kind.since == "2026-01-01T00:00:00.000Z")
    }
}
