import Synchronization
import Testing

@testable import GatewayEngine

@Suite struct ExplainTurnsTests {
    private final class Order: Sendable {
        private let apps = Mutex<[String]>([])
        var all: [String] { apps.withLock { $0 } }
        func note(_ app: String) { apps.withLock { $0.append(app) } }
    }

    /// One app asks as often as it can; the operator of another one waits for a single turn, not
    /// for all of them.
    @Test func `apps take turns and one of them cannot fill the queue`() async throws {
        let turns = ExplainTurns()
        let order = Order()
        try await turns.begin(app: "greedy")
        try await withThrowingTaskGroup(of: Void.self) { group in
            let ask = { @Sendable (app: String) in
                try await turns.begin(app: app)
                order.note(app)
                turns.end()
            }
            let share = ExplainTurns.waitingMax * 4 / 5
            for count in 1...share {
                group.addTask { try await ask("greedy") }
                while turns.waitingCount < count { await Task.yield() }
            }
            await #expect(throws: (any Error).self) { try await turns.begin(app: "greedy") }
            group.addTask { try await ask("other") }
            while turns.waitingCount <= share { await Task.yield() }
            turns.end()
            try await group.waitForAll()
            let place = order.all.firstIndex(of: "other")
            #expect(place.map { $0 <= 1 } == true)
            #expect(order.all.count == share + 1)
        }
        // The turn is available again.
        try await turns.begin(app: "greedy")
        turns.end()
    }
}
