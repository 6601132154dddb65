import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// `kill -9` at any moment loses nothing that was answered (invariant 1).
    @Suite struct KillTests {
        @Test(arguments: [UInt64(11), 22, 33, 44, 55])
        func aKilledGatewayKeepsEveryAnswerItGave(seed: UInt64) throws {
            let kills = 11
            print("kill -9: seed \(seed), \(kills) kills")
            var generator = SeededGenerator(seed: seed)
            let gateway = try GatewayProcess()
            let cast = try KillCast(gateway, &generator)
            for round in 0..<kills {
                let workload = KillWorkload(gateway, cast, round: round, seed: generator.next())
                try workload.run(untilAnswers: Int.random(in: 5...150, using: &generator)) {
                    // Somewhere within the work of a few requests, seldom at the end of one.
                    pause(seconds: Double.random(in: 0...0.015, using: &generator))
                    gateway.kill()
                }
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    try gateway.launch()
                    pause(seconds: Double.random(in: 0...0.2, using: &generator))
                    gateway.kill()
                }
                try gateway.start()
                try KillJudgement(gateway, cast, workload, seed: generator.next()).judge()
                let violations = cast.model.update { $0.violations }
                #expect(
                    violations == [], "seed \(seed), round \(round)\n\(gateway.standardErrorTail)")
                if !violations.isEmpty { return }
            }
            let (accepted, heard) = cast.model.update { ($0.accepted, $0.heard) }
            let registered = cast.registered.update { $0.count }
            print(
                "kill -9: seed \(seed): \(accepted) changes and \(registered) registrations answered,",
                "\(heard) notifications heard")
            #expect(gateway.terminate() == .status(0))
        }
    }
}
