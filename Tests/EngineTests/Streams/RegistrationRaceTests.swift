import GatewayCore
import GatewayStorage
import NIOCore
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// A registration that is replaced, moved or removed between the admission of a request and the
/// answer: the one in force when the answer is made counts.
@Suite struct RegistrationRaceTests {
    @Test(arguments: [0, 1])
    func `a stream follows the widgets registered while it was being opened`(
        loop: Int
    ) async throws {
        try await StreamFixture.running { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor)
            try await fixture.register("phone", character: "owl")
            let reader = try await fixture.open(admitted, on: loop)
            try await fixture.change("Character", "panda")
            try await fixture.change("Character", "owl")
            #expect(try await reader.said().stale == ["detail owl"])
        }
    }

    @Test func `what the new widgets missed since the cursor is caught up`() async throws {
        try await StreamFixture.running { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor)
            try await fixture.register("phone", character: "owl")
            try await fixture.change("Character", "owl")
            let reader = try await fixture.open(admitted)
            #expect(try await reader.said().stale == ["detail owl"])
        }
    }

    @Test func `a stream hears of the account that the client was moved to`() async throws {
        try await StreamFixture.running { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor)
            try await fixture.register("phone", account: "2")
            let reader = try await fixture.open(admitted)
            try await fixture.change("Account", "1")
            #expect(try await reader.said().stale == [])
            try await fixture.change("Account", "2")
            #expect(try await reader.said().stale == ["status"])
        }
    }

    /// The event loop receives two registrations only after it has opened a stream with the newer
    /// one.
    @Test func `a stream does not go back to a registration older than it was opened by`()
        async throws
    {
        try await StreamFixture.running { fixture, cursor in
            let registry = fixture.engine.registry
            let key = StreamFixture.key("phone")
            let record = try #require(registry.record(key))
            func moved(to account: String) -> ClientRecord {
                ClientRecord(
                    client: "phone", registration: record.registration,
                    attributes: ClientAttributes(backend: ["account": [account]]))
            }
            let message = LogMessage.registered(
                moved(to: "2"), app: key.app, receipts: ShardReceipts(count: 2))
            // As the log's writer does before it informs any loop.
            registry.put(moved(to: "3"), app: key.app, at: fixture.store.head)
            let admitted = try fixture.admit("phone", since: cursor)
            let reader = try await fixture.open(admitted)
            fixture.loops.all[0].submit([message])
            try await fixture.change("Account", "2")
            #expect(try await reader.said().stale == [])
            try await fixture.change("Account", "3")
            #expect(try await reader.said().stale == ["status"])
            registry.remove(key)
            fixture.loops.all[0].submit([message])
            try await fixture.change("Account", "3")
            #expect(try await reader.said().isEnded)
        }
    }

    @Test func `a client that was removed gets no stream, and the count stays right`() async throws
    {
        try await StreamFixture.running { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor)
            try await fixture.engine.clients.remove(StreamFixture.key("phone"))
            await #expect(throws: ShardLoop.Failure.self) { try await fixture.open(admitted) }
            #expect(!fixture.hasStream("phone"))
            try await fixture.register("phone", character: "owl")
            #expect(!fixture.hasStream("phone"))
            let reader = try await fixture.open(admitted)
            #expect(fixture.hasStream("phone"))
            try await fixture.change("Character", "owl")
            #expect(try await reader.said().stale == ["detail owl"])
            try await fixture.engine.clients.remove(StreamFixture.key("phone"))
            for loop in fixture.loops.all { try await loop.loop.submit {}.get() }
            #expect(try await reader.said().isEnded)
            for loop in fixture.loops.all { try await loop.loop.submit {}.get() }
            #expect(!fixture.hasStream("phone"))
        }
    }

    @Test func `a token that contradicts the moved account gets no stream`() async throws {
        try await StreamFixture.running { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor)
            let shard = fixture.loops.all[0]
            let opening = ShardLoop.Opening(
                key: admitted.key, terms: RegistrationTerms(vouched: ["account": ["1"]]),
                cursor: admitted.cursor, kinds: nil, grant: admitted.grant, expires: .max)
            func status() async throws -> Int? {
                try await shard.loop.submit { () -> Int? in
                    do throws(ShardLoop.Failure) {
                        _ = try shard.poll(opening)
                        return nil
                    } catch {
                        if case .refused(let problem) = error {
                            return Problem.engine(problem).status
                        }
                        return 0
                    }
                }.get()
            }
            #expect(try await status() == nil)
            try await fixture.register("phone", account: "2")
            #expect(try await status() == 403)
        }
    }

    @Test func `a poll answers by the registration in force`() async throws {
        try await StreamFixture.running { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor, stream: false)
            try await fixture.register("phone", character: "owl", account: "2")
            for (entity, id) in [
                ("Character", "panda"), ("Account", "1"), ("Character", "owl"), ("Account", "2"),
            ] { try await fixture.change(entity, id) }
            #expect(try await fixture.poll(admitted).stale.sorted() == ["detail owl", "status"])
            try await fixture.engine.clients.remove(StreamFixture.key("phone"))
            await #expect {
                try await fixture.poll(admitted)
            } throws: { ($0 as? ProblemDetails)?.status == 404 }
        }
    }

    @Test func `a poll that waits for a client that is removed answers 404`() async throws {
        try await StreamFixture.running { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor, stream: false)
            let registry = fixture.engine.registry
            async let answer = fixture.poll(admitted, wait: 60)
            while registry.channel(admitted.key) == .poll { await Task.yield() }
            try await fixture.engine.clients.remove(StreamFixture.key("phone"))
            do {
                let stale = try await answer.stale
                Issue.record("answered \(stale)")
            } catch let problem as ProblemDetails {
                #expect(problem.status == 404)
            }
        }
    }
}
