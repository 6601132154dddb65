import CatalogModel
import GatewayTestSupport
import Testing
import WidgetModel

@testable import gateway_bench

extension TurnHistogram {
    /// Reads the text of a metrics page.
    init?(text: String) { self.init(MetricsPage(text)) }
}

@Suite struct TurnHistogramTests {
    static let page = """
        HTTP/1.1 200 OK\r
        Content-Type: text/plain; version=0.0.4\r
        \r
        # HELP timeline_gateway_turn_cpu_seconds CPU time of one turn.
        # TYPE timeline_gateway_turn_cpu_seconds histogram
        timeline_gateway_turn_cpu_seconds_bucket{thread="event_loop",le="0.001"} 90
        timeline_gateway_turn_cpu_seconds_bucket{thread="event_loop",le="0.005"} 98
        timeline_gateway_turn_cpu_seconds_bucket{thread="event_loop",le="0.05"} 99
        timeline_gateway_turn_cpu_seconds_bucket{thread="event_loop",le="+Inf"} 100
        timeline_gateway_turn_cpu_seconds_sum{thread="event_loop"} 0.25
        timeline_gateway_turn_cpu_seconds_count{thread="event_loop"} 100
        timeline_gateway_turn_cpu_seconds_bucket{le="0.005", thread="documents"} 1.0
        timeline_gateway_turn_cpu_seconds_bucket{le="+Inf", thread="documents"} 7.0
        timeline_gateway_turn_cpu_seconds_count{thread="documents"} 7.0
        timeline_gateway_streams 3
        """

    @Test func readsEachThreadsTurns() {
        let turns = TurnHistogram(text: Self.page)
        #expect(
            turns?.byThread == [
                "event_loop": .init(count: 100, long: 2), "documents": .init(count: 7, long: 6),
            ])
        #expect(turns?.long.map(\.thread) == ["event_loop"], "no document's turn counts")
        #expect(turns?.long.map(\.count) == [2])
    }

    @Test func aPageWithoutTheHistogramOrItsBoundIsNone() {
        #expect(TurnHistogram(text: "timeline_gateway_streams 3\n") == nil)
        #expect(TurnHistogram(text: "") == nil)
        let other = Self.page.replacing(#"le="0.005"} 98"#, with: #"le="0.006"} 98"#)
        #expect(TurnHistogram(text: other) == nil)
    }

    @Test func aDifferenceLeavesOutWhatWasBefore() throws {
        let before = try #require(TurnHistogram(text: Self.page))
        let later = Self.page
            .replacing(#"le="0.005"} 98"#, with: #"le="0.005"} 107"#)
            .replacing(#"{thread="event_loop"} 100"#, with: #"{thread="event_loop"} 110"#)
        let after = try #require(TurnHistogram(text: later))
        let difference = after.since(before)
        #expect(difference.byThread["event_loop"] == .init(count: 10, long: 1))
        #expect(difference.byThread["documents"] == .init())
        #expect(after.since(after).long.isEmpty)
    }
}

@Suite struct BystanderStatsTests {
    @Test func percentilesAreOfTheSortedList() {
        let figures = BystanderStats(milliseconds: (1...200).reversed().map(Double.init))
        #expect(figures.percentile(0.5) == 100)
        #expect(figures.percentile(0.99) == 198)
        #expect(figures.percentile(0) == 1)
        #expect(figures.percentile(1) == 200)
        #expect(figures.slowest == 200)
        let none = BystanderStats(milliseconds: [])
        #expect(none.percentile(0.99) == 0 && none.slowest == 0)
    }
}

@Suite struct RouteCoverageTests {
    static let document: JSONValue = [
        "paths": [
            "/v1/apps/{app}/catalog": [
                "put": ["requestBody": ["required": true]], "get": ["summary": "Read it"],
            ],
            "/v1/apps/{app}/clients": ["delete": [:]], "/.well-known/jwks.json": ["get": [:]],
        ]
    ]

    @Test func documentsThatAreTakenAndThoseThatAreMadeAreRequired() throws {
        let coverage = try #require(RouteCoverage(openAPI: Self.document))
        #expect(coverage.routes.count == 4)
        let path = "/v1/apps/{app}/catalog"
        #expect(coverage.required == [Route("GET", path), Route("PUT", path)])
        #expect(coverage.unreached == coverage.required)
    }

    @Test func aRouteIsReachedByEachShapeOnce() throws {
        var coverage = try #require(RouteCoverage(openAPI: Self.document))
        let route = Route("PUT", "/v1/apps/{app}/catalog")
        for shape in ["aliases", "catalog", "aliases"] { coverage.note(route, by: shape) }
        #expect(coverage.shapes[route] == ["aliases", "catalog"])
        #expect(coverage.unreached.map(\.method) == ["GET"])
    }
}

@Suite struct ComplexityVerdictTests {
    private static let quiet = BystanderStats(milliseconds: [Double](repeating: 2, count: 100))

    private static func page(long: [String: Int] = [:], without missing: String? = nil) -> String {
        (TurnHistogram.shared + [TurnHistogram.documents]).filter { $0 != missing }.map { thread in
            """
            \(TurnHistogram.family)_bucket{thread="\(thread)",le="0.005"} \(100 - (long[thread] ?? 0))
            \(TurnHistogram.family)_count{thread="\(thread)"} 100

            """
        }.joined()
    }

    private static func outcome(
        _ milliseconds: [Double] = [Double](repeating: 3, count: 100), failed: Int = 0,
        page: String = Self.page()
    ) -> ShapeOutcome {
        var outcome = ShapeOutcome(shape: "explain")
        outcome.statuses = [200: 12]
        outcome.bystander = BystanderStats(milliseconds: milliseconds, failed: failed)
        outcome.turns = TurnHistogram(text: page)
        return outcome
    }

    private static func coverage(isReached: Bool = true) throws -> RouteCoverage {
        var coverage = try #require(RouteCoverage(openAPI: RouteCoverageTests.document))
        for route in coverage.required where isReached || route.method == "PUT" {
            coverage.note(route, by: "explain")
        }
        return coverage
    }

    /// The names of the bounds that did not hold.
    private static func missed(
        _ outcomes: [ShapeOutcome], quiet: BystanderStats = Self.quiet, isReached: Bool = true
    ) throws -> [String] {
        let verdict = ComplexityVerdict(
            quiet: quiet, outcomes: outcomes, coverage: try coverage(isReached: isReached))
        let missed = verdict.bounds.filter { !$0.isMet }
        #expect(verdict.isMet == missed.isEmpty)
        return missed.map(\.name)
    }

    @Test func aRunInWhichNobodyWaitsHolds() throws {
        #expect(try Self.missed([Self.outcome()]) == [])
    }

    /// A turn that is long once may be caused by the host; one that is long each time is caused by
    /// our code.
    @Test func aShapeIsJudgedByTheTurnsOfItsLastMeasurement() throws {
        var outcome = Self.outcome(page: Self.page(long: ["event_loop": 1]))
        #expect(outcome.hasLongTurns)
        outcome.add(Self.outcome())
        #expect(!outcome.hasLongTurns && outcome.measurements == 2)
        #expect(try Self.missed([outcome]) == [])
        outcome.add(Self.outcome(page: Self.page(long: ["requests": 2])))
        #expect(try Self.missed([outcome]) == ["turns over 5 ms CPU"])
        #expect(!Self.outcome(page: Self.page(long: ["writer": 1])).hasLongTurns)
    }

    @Test func everyPostCountsHoweverOftenAShapeIsMeasured() throws {
        var outcome = Self.outcome([Double](repeating: 3, count: 99) + [260])
        outcome.missed = [Route("GET", "/a"), Route("GET", "/b")]
        var later = Self.outcome(failed: 1)
        later.reached = [Route("GET", "/a")]
        outcome.add(later)
        #expect(outcome.bystander.milliseconds.count == 200 && outcome.statuses == [200: 24])
        #expect(outcome.missed == [Route("GET", "/b")])
        #expect(
            try Self.missed([outcome]) == [
                "bystander's slowest post", "bystander's posts taken", "documents looked at",
            ])
    }

    @Test func aSlowBystanderFails() throws {
        let slow = [Double](repeating: 3, count: 98) + [51, 51]
        #expect(try Self.missed([Self.outcome(slow)]) == ["bystander's p99"])
        let fewSlow = [Double](repeating: 3, count: 99) + [51]
        #expect(try Self.missed([Self.outcome(fewSlow)]) == [])
        let stall = [Double](repeating: 3, count: 199) + [250]
        #expect(try Self.missed([Self.outcome(stall)]) == ["bystander's slowest post"])
    }

    @Test func theBoundGrowsWithTheQuietP99() throws {
        let quiet = BystanderStats(milliseconds: [Double](repeating: 20, count: 100))
        let slow = [Double](repeating: 60, count: 100)
        #expect(try Self.missed([Self.outcome(slow)], quiet: quiet) == [])
        #expect(
            try Self.missed([Self.outcome(slow.map { $0 + 1 })], quiet: quiet)
                == ["bystander's p99"])
    }

    @Test func aBystanderThatWasNotMeasuredOrRefusedFails() throws {
        #expect(
            try Self.missed([Self.outcome([])])
                == ["bystander's p99", "bystander's slowest post", "bystander's posts taken"])
        #expect(
            try Self.missed([Self.outcome(), Self.outcome([])]) == ["bystander's posts taken"])
        #expect(
            try Self.missed([Self.outcome()], quiet: .init(milliseconds: []))
                == ["bystander's p99"])
        #expect(try Self.missed([Self.outcome(failed: 1)]) == ["bystander's posts taken"])
    }

    @Test func aMissingHistogramFails() throws {
        let without = Self.outcome(page: "timeline_gateway_streams 3\n")
        #expect(without.turns == nil)
        #expect(try Self.missed([Self.outcome(), without]) == ["turns over 5 ms CPU"])
    }

    @Test(arguments: TurnHistogram.shared)
    func aThreadThatCountsNoTurnsFails(thread: String) throws {
        #expect(
            try Self.missed([Self.outcome(page: Self.page(without: thread))])
                == ["turns over 5 ms CPU"])
    }

    @Test(arguments: ["event_loop", "arrivals", "requests", "any other"])
    func aTurnOverTheBoundFails(thread: String) throws {
        let page =
            Self.page(long: [thread: 1])
            + (thread != "any other"
                ? ""
                : """
                \(TurnHistogram.family)_bucket{thread="any other",le="0.005"} 9
                \(TurnHistogram.family)_count{thread="any other"} 10
                """)
        #expect(try Self.missed([Self.outcome(page: page)]) == ["turns over 5 ms CPU"])
    }

    @Test func longTurnsOfDocumentsAndOfTheWriterHold() throws {
        let page = Self.page(long: ["documents": 5, "writer": 2])
        #expect(try Self.missed([Self.outcome(page: page)]) == [])
    }

    @Test func aRouteThatWasNotReachedFails() throws {
        #expect(try Self.missed([Self.outcome()], isReached: false) == ["routes reached"])
    }

    @Test func aShapeWhoseDocumentsWereNotLookedAtFails() throws {
        var outcome = Self.outcome()
        outcome.missed = [Route("PUT", "/v1/apps/{app}/catalog")]
        #expect(try Self.missed([outcome]) == ["documents looked at"])
        outcome = Self.outcome()
        outcome.statuses[429] = 1
        #expect(try Self.missed([outcome]) == ["answers 429, which hide the work"])
        #expect(try Self.missed([]).contains("documents looked at"))
    }
}

@Suite struct AttackDocumentTests {
    @Test func eachSendingOfARequestHasANumberOfItsOwn() {
        let mark = AttackRequest.numberMark
        let request = AttackRequest(
            Route("GET", "/"), reaching: [200], bytes: Array("<\(mark)|\(mark)>".utf8), count: 2)
        #expect(
            String(decoding: request.bytes(number: 21), as: UTF8.self)
                == "<00000042|00000042><00000043|00000043>")
        let plain = AttackRequest(Route("GET", "/"), reaching: [200], bytes: [1, 2])
        #expect(plain.bytes(number: 7) == [1, 2])
    }

    @Test func documentsAreWellFormedAndAtTheirLimits() throws {
        let limits = Limits()
        let atLimit: [(bytes: [UInt8], limit: Int)] = [
            (AttackDocuments.catalog(app: "a"), limits.catalogBytesMax),
            (AttackDocuments.registration(), limits.registrationBytesMax),
            (AttackDocuments.registration(isUnknown: true), limits.registrationBytesMax),
            (AttackDocuments.patch(osVersion: "26.1"), limits.registrationBytesMax),
            (AttackDocuments.acknowledgement(cursor: "c"), limits.registrationBytesMax),
            (AttackDocuments.tokenOrder, limits.eventBytesMax),
            (AttackDocuments.pushOrder, limits.eventBytesMax),
            (AttackDocuments.reloadOrder, limits.eventBytesMax),
        ]
        for (index, document) in atLimit.enumerated() {
            #expect(document.bytes.count <= document.limit, "\(index)")
            #expect(document.bytes.count > document.limit - 64, "\(index)")
            #expect(throws: Never.self) { try JSONValue(parsing: document.bytes) }
        }
        #expect(AttackDocuments.aliases.count > limits.catalogBytesMax - 8)
        #expect(AttackDocuments.aliases.count <= limits.catalogBytesMax)
        #expect(AttackDocuments.emptyArrays.count <= limits.postBytesMax)
        #expect(AttackDocuments.emptyArrays.count > limits.postBytesMax - 8)
    }

    @Test func catalogsHoldAsManyRulesAsTheyMay() throws {
        let limits = Limits()
        let catalog = try Catalog(
            contentType: "application/json", body: AttackDocuments.catalog(app: "a"), app: "a",
            limits: limits)
        let rules = catalog.widgets.flatMap(\.dependsOn)
        #expect(catalog.widgets.count == limits.catalogKindsMax)
        #expect(rules.count { $0.entity == "Hot" } == limits.changeKeysMax / 2)
        #expect(rules.count { $0.entity == "Wide" } * 65 == 9_750)
        #expect(rules.count { $0.entity == "Warm" } * 2 * 1_000 == limits.postKeysMax)
        let most = try Catalog(
            contentType: "application/yaml",
            body: AttackDocuments.mostRules(app: "a", variant: "First"), app: "a", limits: limits)
        #expect(most.widgets.flatMap(\.dependsOn).count == 16_000)
        #expect(most.widgets.flatMap { $0.recommendations ?? [] }.count == 16_000)
        let unknown = AttackDocuments.unknownEntities(app: "a")
        #expect {
            try Catalog(
                contentType: "application/yaml", body: unknown, app: "a", limits: limits)
        } throws: { error in
            guard case .wrong(let faults)? = error as? DocumentRefusal else { return false }
            return faults.count == 16_000
        }
    }

    @Test func postsAreTakenAndHoldAsManyEventsAsTheyMay() throws {
        func events(_ bytes: [UInt8], isBatch: Bool = true) throws -> Int {
            let request = AttackRequest(Route("POST", "/"), reaching: [202], bytes: bytes)
            return try CloudEventPost(
                contentType: "application/cloudevents\(isBatch ? "-batch" : "")+json", headers: [],
                body: request.bytes(number: 1), limits: Limits()
            ).events.count
        }
        #expect(try events(AttackDocuments.wideChange, isBatch: false) == 1)
        #expect(try events(AttackDocuments.hotChange, isBatch: false) == 1)
        #expect(try events(AttackDocuments.explainedBatch) == 50)
        #expect(try events(AttackDocuments.hotBatch) == 20)
        #expect(try events(AttackDocuments.warmBatch) == 1_000)
        #expect(try events(AttackDocuments.largeBatch) == 1_000)
    }
}
