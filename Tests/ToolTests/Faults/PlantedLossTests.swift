import GatewayTestSupport
import Testing
import WidgetModel

@testable import gateway_faults

/// The judge's verdicts on a model gateway without faults, and on the same run with one
/// notification removed.
@Suite struct PlantedLossTests {
    @Test(arguments: 1...50)
    func everyPlantedLossIsFound(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let record = Self.record(&generator)
        #expect(Judge.judge(record).violations == [], "seed \(seed)")
        let planted = try #require(PlantedLoss.plant(in: record, using: &generator))
        #expect(planted.record.entries.count == record.entries.count - 1)
        let kinds = Judge.judge(planted.record).violations.map(\.kind)
        #expect(kinds == [.lost], "seed \(seed): \(planted.text)")
    }

    @Test func whatIsCoveredIsNotPlanted() {
        var run = RecordBuilder()
        run.begin([RecordBuilder.panda])
        run.post([.character("panda")])
        run.tell("anna", .interest(RecordBuilder.panda))
        run.tell("anna", .interest(RecordBuilder.panda))
        run.move()
        var generator = SplitMix64(seed: 1)
        #expect(PlantedLoss.plant(in: run.record, using: &generator) == nil)
    }

    /// Records a run of a gateway that notifies every holder at once, with registrations that
    /// change.
    private static func record(_ generator: inout SplitMix64) -> Record {
        let all = (0..<6).map { Interest(kind: .detail, subject: .character("\($0)")) }
        let clients = ["anna", "ben", "cleo"]
        var run = RecordBuilder()
        var holdings: [String: Set<Interest>] = [:]
        func choice(_ generator: inout SplitMix64) -> Set<Interest> {
            Set(all.shuffled(using: &generator).prefix(1 + generator.below(3)))
        }
        for client in clients {
            holdings[client] = choice(&generator)
            run.begin(holdings[client] ?? [], as: client)
        }
        for step in 0..<80 {
            // No registration at the end, so that there is a notification to remove.
            if generator.happens(10), step < 40 {
                let client = generator.pick(clients)
                holdings[client] = choice(&generator)
                run.register(client, holdings[client] ?? [])
            }
            let interest = generator.pick(all)
            run.post([interest.subject])
            for client in clients {
                if holdings[client]?.contains(interest) == true {
                    run.tell(client, .interest(interest))
                }
                if generator.happens(50) { run.move(client) }
            }
        }
        for client in clients { run.move(client) }
        return run.record
    }
}
