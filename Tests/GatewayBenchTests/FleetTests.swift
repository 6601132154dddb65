import GatewayPostgres
import Testing
import WidgetModel

@testable import gateway_bench

/// The simulation against what was measured with real nodes, with the same constants for all rows.
@Suite struct FleetWritingTests {
    /// A measured row: the standby of the quorum 2 ms away, no registrations.
    struct Row: Sendable {
        let writers: Int
        let changes: Double
        let batchRate: Double
        let meanBatch: Double
        let median: Double
    }

    /// All rows of 10,000 changes a second, of two runs the mean, and those of 30,000 and 60,000.
    static let rows = [
        Row(writers: 1, changes: 10_000, batchRate: 282, meanBatch: 35, median: 5.3e-3),
        Row(writers: 3, changes: 10_000, batchRate: 253.5, meanBatch: 40, median: 17.5e-3),
        Row(writers: 8, changes: 10_000, batchRate: 238, meanBatch: 42, median: 49e-3),
        Row(writers: 16, changes: 10_000, batchRate: 267, meanBatch: 37, median: 91e-3),
        Row(writers: 3, changes: 30_000, batchRate: 202, meanBatch: 149, median: 22e-3),
        Row(writers: 3, changes: 60_000, batchRate: 155, meanBatch: 388, median: 28e-3),
    ]

    static func outcome(
        writers: Int, changes: Double, nodes: Int = 3, grant: FleetSettings.Grant = .fifo
    ) -> FleetWriting.Outcome {
        var writing = FleetWriting(
            FleetSettings(
                nodes: nodes, writers: writers, changes: changes, grant: grant, seconds: 5),
            constants: FleetConstants())
        return writing.run()
    }

    @Test(arguments: rows)
    func aMeasuredRowIsReproduced(_ row: Row) {
        let outcome = Self.outcome(writers: row.writers, changes: row.changes)
        let median = FleetDistribution(outcome.answers).percentile(0.5)
        #expect((0.8...1.2).contains(outcome.batchRate / row.batchRate), "\(outcome.batchRate)")
        #expect((0.8...1.2).contains(outcome.meanBatch / row.meanBatch), "\(outcome.meanBatch)")
        #expect((0.8...1.2).contains(median / row.median), "\(median)")
        #expect(outcome.refused == 0)
    }

    /// 3 nodes with 1,000 changes a second: measured 270 batches of 4, p50 17 ms.
    @Test func aSmallLoadIsReproduced() {
        let outcome = Self.outcome(writers: 3, changes: 1_000)
        let median = FleetDistribution(outcome.answers).percentile(0.5)
        #expect((0.8...1.2).contains(outcome.batchRate / 270), "\(outcome.batchRate)")
        #expect((0.8...1.2).contains(outcome.meanBatch / 4), "\(outcome.meanBatch)")
        #expect((0.8...1.2).contains(median / 17e-3), "\(median)")
    }

    @Test func theSameSeedGivesTheSameFigures() {
        let settings = FleetSettings(clients: 30_000, lost: 1, seconds: 2)
        #expect(
            FleetReport(FleetRun(settings)).text == FleetReport(FleetRun(settings)).text)
        var other = settings
        other.seed = 2
        #expect(FleetReport(FleetRun(other)).text != FleetReport(FleetRun(settings)).text)
    }

    /// Every answered post is in a batch, and readers are sent each at most once.
    @Test func nothingIsLostOrTwice() {
        let outcome = Self.outcome(writers: 3, changes: 5_000, nodes: 4)
        #expect(outcome.answers.count == outcome.records)
        #expect(outcome.delays.count <= outcome.batches)
        #expect(outcome.delays.count > outcome.batches - 20)
        #expect(outcome.sent <= 4 * outcome.records)
        #expect(outcome.sent > 4 * outcome.records * 99 / 100)
    }

    @Test func moreThanTheLockTakesIsRefused() {
        let limit = FleetConstants().batchTime(changes: BatchLimits().changes)
        let rate = Double(BatchLimits().changes) / limit
        let outcome = Self.outcome(writers: 3, changes: 2 * rate)
        #expect(outcome.refused > 0)
        #expect((0.9...1.1).contains(Double(outcome.records) / outcome.seconds / rate))
    }

    @Test func writersThatWaitForTheLockTooLongAreRefused() {
        let outcome = Self.outcome(writers: 600, changes: 10_000, nodes: 1)
        #expect(outcome.refused > 0)
        #expect(outcome.answers.allSatisfy { $0 < 5 })
    }

    @Test func lockByChanceHasTheSameRateAndALongerTail() {
        let (fair, chance) = (
            Self.outcome(writers: 8, changes: 10_000),
            Self.outcome(writers: 8, changes: 10_000, grant: .random)
        )
        #expect((0.95...1.05).contains(chance.batchRate / fair.batchRate))
        #expect(
            FleetDistribution(chance.answers).percentile(0.99)
                > 1.5 * FleetDistribution(fair.answers).percentile(0.99))
    }

    @Test func aFleetWithoutPostsDoesNothing() {
        let run = FleetRun(FleetSettings(changes: 0))
        #expect(run.writing.batches == 0)
        #expect(run.primaryCores == 0)
        #expect(FleetReport(run).exceeded.isEmpty)
    }
}

@Suite struct FleetLossTests {
    static func run(nodes: Int, clients: Int, lost: Int, changes: Double = 100) -> FleetRun {
        FleetRun(
            FleetSettings(
                nodes: nodes, changes: changes, clients: clients, lost: lost, seconds: 1))
    }

    /// The reckoning: 41 partitions, 3.4 s of one connection (2.7 from the measured cost), less
    /// than a second after the lease.
    @Test func oneOfAHundredNodesIsReplaced() throws {
        let run = Self.run(nodes: 100, clients: 25_000_000, lost: 1)
        let handOver = try #require(run.handOver)
        #expect((20...62).contains(handOver.partitions))
        let each = handOver.loading / Double(handOver.partitions)
        #expect((0.05...0.09).contains(each))
        let leases = 7.0...10.0
        #expect(try #require(handOver.times.min()) >= leases.lowerBound)
        #expect(try #require(handOver.times.max()) < leases.upperBound + 1 + 10 * each)
    }

    @Test func allPartitionsOfTheLostMove() throws {
        let handOver = try #require(Self.run(nodes: 2, clients: 1_000, lost: 1).handOver)
        #expect((1_900...2_200).contains(handOver.partitions))
        #expect(handOver.partitionsOfOne == handOver.partitions)
    }

    @Test func allClientsHaveAStreamAgain() throws {
        for (nodes, lost) in [(2, 1), (3, 2), (10, 1)] {
            let run = Self.run(nodes: nodes, clients: 600_000, lost: lost)
            let reconnect = try #require(run.reconnect)
            #expect(reconnect.clients == 200_000 * lost / nodes)
            #expect(reconnect.opened.reduce(0, +) == reconnect.clients)
            // No node opens more than it may, and what it did not use just before.
            let allowed = run.constants.admission * Double(nodes - lost)
            #expect(Double(reconnect.peak) <= 1.2 * allowed)
            #expect(reconnect.time(of: 0.5) <= reconnect.time(of: 1))
            #expect(reconnect.time(of: 1) > Double(reconnect.clients) / allowed)
        }
    }
}

@Suite struct FleetReportTests {
    @Test func threeNodesExceedNothing() {
        let report = FleetReport(FleetRun(FleetSettings(clients: 100_000, seconds: 2)))
        #expect(report.exceeded.isEmpty)
        #expect(report.text.hasSuffix("No limit is exceeded."))
    }

    @Test func eachLimitHasASentence() {
        func first(_ settings: FleetSettings, _ constants: FleetConstants = .init()) -> [String] {
            FleetReport(FleetRun(settings, constants: constants)).exceeded.map {
                String($0.prefix { $0 != ":" })
            }
        }
        #expect(first(FleetSettings(nodes: 100, seconds: 1)) == ["network"])
        #expect(first(FleetSettings(nodes: 3, changes: 200_000, seconds: 1)).contains("lock"))
        #expect(
            first(FleetSettings(nodes: 1, writers: 100, changes: 1_000, seconds: 1)) == ["lock"])
        #expect(first(FleetSettings(changes: 1, clients: 10_000_000, seconds: 1)) == ["memory"])
        #expect(
            first(FleetSettings(changes: 60_000, clients: 1_000, seconds: 1)).contains("node CPU"))
    }

    /// The reckoning for 3 nodes, 10,000 changes a second in batches of 50.
    @Test func threeNodesNeedWhatTheFormulasSay() {
        let run = FleetRun(FleetSettings(seconds: 5))
        let (changes, batches) = (10_000.0, run.writing.batchRate)
        let writing = batches * 200e-6 + changes * (8e-6 + 2e-6 * 12)
        #expect((0.97...1.03).contains(run.primaryCores / writing))
        // Three writers notify 200 times a second each at most: every batch is a wake-up.
        let readers = 3 * (batches * 60e-6 + changes * 0.4e-6)
        #expect((0.95...1.05).contains(run.readerCores / readers), "\(run.readerCores / readers)")
        #expect((0.95...1.05).contains(run.readerBytes / (3 * changes * 220)))
        let median = FleetDistribution(run.writing.answers).percentile(0.5)
        #expect((0.9...1.1).contains(median / (1.5 * run.turn)))
    }

    @Test func theDocumentHasSettingsAndFigures() {
        let json = FleetReport(FleetRun(FleetSettings(lost: 1, seconds: 1))).json
        guard case .object(let document) = json, case .object(let settings)? = document["settings"],
            case .array(let rows)? = document["rows"]
        else {
            Issue.record("not as expected: \(json.text)")
            return
        }
        #expect(settings["lose"] == .integer(1))
        let names = rows.compactMap { row -> JSONValue? in
            guard case .object(let object) = row else { return nil }
            return object["name"]
        }
        #expect(names.count == rows.count)
        #expect(names.contains(.string("partitions moved")))
        #expect(document["exceeded"] == .array([]))
    }
}
