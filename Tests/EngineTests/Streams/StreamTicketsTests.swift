import Synchronization
import Testing
import WidgetModel

@testable import GatewayServer

/// The memory of tickets; `BrowserTests` has what they open.
@Suite struct StreamTicketsTests {
    @Test func `tickets occupy bounded memory, and the oldest are forgotten`() async throws {
        let tickets = StreamTickets(leader: nil, now: { 0 })
        let authorization = String(repeating: "a", count: 8_192)
        var issued: [String] = []
        for _ in 0...(StreamTickets.bytesMax / 8_192) {
            issued.append(try await tickets.issue(for: authorization))
        }
        #expect(Set(issued).count == issued.count)
        await #expect(throws: ProblemDetails.self) { try await tickets.redeem(issued[0]) }
        #expect(try await tickets.redeem(issued[issued.count - 1]) == authorization)
    }

    @Test func `a used ticket makes room`() async throws {
        let tickets = StreamTickets(leader: nil, now: { 0 })
        let kept = try await tickets.issue(for: "kept")
        let authorization = String(repeating: "a", count: 8_192)
        for _ in 0...(StreamTickets.bytesMax / 8_192) {
            let ticket = try await tickets.issue(for: authorization)
            #expect(try await tickets.redeem(ticket) == authorization)
        }
        #expect(try await tickets.redeem(kept) == "kept")
    }

    @Test func `time frees what nobody uses`() async throws {
        let now = Mutex<Int64>(0)
        let tickets = StreamTickets(leader: nil, now: { now.withLock { $0 } })
        let early = try await tickets.issue(for: "early")
        now.withLock { $0 = 15_000 }
        let late = try await tickets.issue(for: "late")
        now.withLock { $0 = 30_000 }
        await #expect(throws: ProblemDetails.self) { try await tickets.redeem(early) }
        #expect(try await tickets.redeem(late) == "late")
        await #expect(throws: ProblemDetails.self) { try await tickets.redeem(late) }
    }
}
