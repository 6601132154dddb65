import ArgumentParser
import CatalogModel
import Foundation
import GatewaySigning
import GatewayTelemetry
import Testing
import WidgetModel

@testable import timelinectl

@Suite struct FleetPlanTests {
    private static let catalog = """
        app: com.mygame
        entities: { Character: { properties: [health, name] }, Turn: { properties: [number] } }
        intents: { One: { parameters: [{ name: who, type: Character }] } }
        widgets:
          - kind: detail
            configuration: appIntent
            intent: One
            families: [systemSmall]
            dependsOn: [{ entity: Character, match: { id: $who }, properties: [health] }]
          - kind: turn
            configuration: static
            families: [systemSmall]
            dependsOn: [{ entity: Turn, match: { account: $client.account } }]
          - kind: turns
            configuration: static
            families: [systemSmall]
            dependsOn: [{ entity: Turn, match: { account: $client.account } }, { entity: Turn }]
        """

    private func plan(seed: UInt64 = 1, devices: Int = 50) throws -> FleetPlan {
        let catalog = try Catalog(JSONValue(yaml: Self.catalog), app: nil, limits: .none)
        let issuer = TokenIssuer(key: try SigningKey(), iss: "i", aud: "a")
        let clients = try (0..<devices).map { number in
            let token = try issuer.issue(
                sub: "d-\(number)", app: "com.mygame", scopes: [.client], ttl: 60,
                attributes: ["account": ["item-\(number % 3 + 1)"]], now: 0)
            return try #require(SimulatedClient(token: token))
        }
        return try #require(FleetPlan(catalog: catalog, clients: clients, items: 4, seed: seed))
    }

    @Test func aSeedSaysEverything() throws {
        #expect(
            try plan().devices.map(\.registration) == plan().devices.map(\.registration))
        #expect(
            try plan().devices.map(\.registration) != plan(seed: 2).devices.map(\.registration))
    }

    @Test func everyDeviceHasWidgetsAndNumbersOfItsOwn() throws {
        let plan = try plan()
        var next = 0
        for device in plan.devices {
            #expect((1...FleetPlan.widgetsMax).contains(device.registration.widgets.count))
            #expect(device.firstTimeline == next)
            next += device.registration.widgets.count
        }
        #expect(plan.timelineKinds.count == next)
    }

    /// Compares the plan with the catalog's texts above, written out as code.
    @Test func aChangeConcernsWhatDependsOnItAndNothingElse() throws {
        let plan = try plan()
        var generator = SplitMix64(seed: 3)
        var hits = 0
        for _ in 0..<200 {
            let change = try #require(plan.change(using: &generator))
            var expected: Set<Int> = []
            for device in plan.devices {
                let isTurn = change.entity == "Turn"
                let isOwn = change.attributes["account"] == device.client.attributes["account"]
                for (place, widget) in device.registration.widgets.enumerated() {
                    let isConcerned =
                        switch widget.kind {
                        case "detail":
                            change.properties == ["health"]
                                && widget.parameters["who"] == change.id.map { .single($0) }
                        case "turn": isTurn && isOwn
                        default: isTurn
                        }
                    if isConcerned { expected.insert(device.firstTimeline + place) }
                }
            }
            #expect(plan.timelines(concernedBy: change) == expected)
            hits += expected.count
        }
        #expect(hits > 0)
    }

    @Test func lowRanksAreDrawnTheMostOften() {
        var generator = SplitMix64(seed: 1)
        var counts = [Int](repeating: 0, count: 5)
        let popularity = Popularity(ranks: 4)
        for _ in 0..<12_500 { counts[popularity.draw(using: &generator)] += 1 }
        // 1 + 1/2 + 1/3 + 1/4 is 25/12.
        for rank in 1...4 { #expect(abs(counts[rank] - 6_000 / rank) < 300, "\(counts)") }
    }

    @Test(arguments: [
        ["--devices", "0"], ["--devices", "10001"], ["--items", "0"], ["--post", "0"],
        ["--post", "nan"], ["--duration", "0"], ["--duration", "inf"], ["--build-ms", "-1"],
        ["--patience", "0"], ["--every", "0"], ["--admin", "9464"], ["--admin", ":1"],
        ["--admin", "host:0"], ["surplus"],
    ])
    func whatCannotBeSimulatedIsRefusedBeforeAnythingIsSent(arguments: [String]) {
        #expect(throws: (any Error).self) { try DeviceCommand.parse(arguments) }
    }

    @Test func tokensOfAFileAreReadOrRefused() throws {
        let path = NSTemporaryDirectory() + "tokens-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let issuer = TokenIssuer(key: try SigningKey(), iss: "i", aud: "a")
        func token(_ sub: String) throws -> String {
            try issuer.issue(sub: sub, app: "a", scopes: [.client], ttl: 60, now: 0)
        }
        func clients(_ lines: [String], _ count: Int) throws -> [String] {
            try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path))
            return try SimulatedClient.read(path, count: count).map(\.id)
        }
        let (one, two) = (try token("one"), try token("two"))
        #expect(try clients([one, two, ""], 2) == ["one", "two"])
        #expect(try clients([one, two], 1) == ["one"])
        #expect(throws: ValidationError.self) { try clients([one], 2) }
        #expect(throws: ValidationError.self) { try clients([one, one], 2) }
        #expect(throws: ValidationError.self) { try clients([one, "x"], 2) }
    }
}

@Suite struct DueReloadsTests {
    private let start = ContinuousClock.now

    private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test func aRebuildCountsFromTheLatestChangeItCovers() {
        var due = DueReloads(patience: .seconds(10))
        let one = due.post([7, 8], at: at(0))
        let two = due.post([7], at: at(2))
        #expect(due.accepted(one, at: 11) == .init())
        #expect(due.accepted(two, at: 12) == .init())
        #expect(due.due == 3)
        #expect(due.rebuilt(7, upTo: 12, at: at(5)) == .init(took: [(7, .seconds(3))]))
        #expect(due.due == 1)
        #expect(due.rebuilt(8, upTo: 11, at: at(5)) == .init(took: [(8, .seconds(5))]))
        #expect(due.due == 0)
    }

    @Test func aRebuildThatDoesNotCoverTheChangeLeavesItDue() {
        var due = DueReloads(patience: .seconds(10))
        _ = due.accepted(due.post([7], at: at(0)), at: 11)
        #expect(due.rebuilt(7, upTo: 10, at: at(1)) == .init(strays: 1))
        #expect(due.due == 1)
        #expect(due.giveUp(now: at(9)) == 0)
        #expect(due.giveUp(now: at(10)) == 1)
        #expect(due.due == 0)
        #expect(due.giveUp(now: at(20)) == 0)
    }

    @Test func aRebuildWithoutAReasonIsAStrayOnceThatIsKnown() {
        var due = DueReloads(patience: .seconds(10))
        let change = due.post([7], at: at(0))
        #expect(due.rebuilt(7, upTo: 11, at: at(1)) == .init())
        #expect(due.accepted(change, at: 12) == .init(strays: 1))
        #expect(due.rebuilt(7, upTo: 12, at: at(2)) == .init(took: [(7, .seconds(2))]))
    }

    /// Several posts are answered in any order, some of them after the rebuild that covers all.
    @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
    func `a rebuild counts once, however late the posts are answered`(order: [Int]) {
        var due = DueReloads(patience: .seconds(10))
        let changes = (0..<3).map { due.post([7], at: at($0)) }
        #expect(due.rebuilt(7, upTo: 13, at: at(4)) == .init())
        let later = due.post([7], at: at(5))
        let outcomes = order.map { due.accepted(changes[$0], at: UInt64($0) + 11) }
        #expect(outcomes == [.init(), .init(), .init(took: [(7, .seconds(2))])])
        #expect(due.due == 1)
        #expect(due.accepted(later, at: 14) == .init())
        #expect(due.rebuilt(7, upTo: 14, at: at(6)) == .init(took: [(7, .seconds(1))]))
    }

    /// When the window of one rule ends, the latest change is notified. A change of another rule is
    /// notified later, although the rebuild has covered it.
    @Test func changesOfSeveralRulesCostOneRebuild() {
        var due = DueReloads(patience: .seconds(10))
        for sequence in UInt64(58)...61 {
            _ = due.accepted(due.post([7], at: at(0)), at: sequence)
        }
        #expect(due.rebuilt(7, upTo: 60, at: at(1)) == .init(took: [(7, .seconds(1))]))
        #expect(due.rebuilt(7, upTo: 60, at: at(2)) == .init(strays: 1), "for 59 once more")
        #expect(due.due == 1)
        #expect(due.rebuilt(7, upTo: 61, at: at(4)) == .init(took: [(7, .seconds(4))]))
        #expect(due.rebuilt(7, upTo: 61, at: at(5)) == .init(strays: 1))
    }

    @Test func whatTheGatewayRefusedIsNotDue() {
        var due = DueReloads(patience: .seconds(10))
        let change = due.post([7, 8], at: at(0))
        #expect(due.refused(change) == .init())
        #expect(due.due == 0)
        #expect(due.rebuilt(7, upTo: 11, at: at(1)) == .init(strays: 1))
    }

    @Test func bucketsSayWhatTheyHoldSinceAnEarlierReading() {
        let before = HistogramCounts(cumulative: [0.1: 5, 0.5: 9, 1: 9, .infinity: 9])
        let after = HistogramCounts(cumulative: [0.1: 5, 0.5: 19, 1: 108, .infinity: 109])
        let window = after.since(before)
        #expect(window.total == 100)
        #expect(window.bucket(ofQuantile: 0.1)?.upTo == 0.5)
        #expect(window.bucket(ofQuantile: 0.5)?.above == 0.5)
        #expect(window.bucket(ofQuantile: 1)?.upTo == .infinity)
        #expect(
            [0.05, 0.3, 0.7].map { window.agrees($0, onQuantile: 0.5) } == [false, true, true])
        #expect(after.since(after).bucket(ofQuantile: 0.5) == nil)
    }
}
