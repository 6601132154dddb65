import GatewaySigning
import GatewayTestSupport
import NIOCore
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayOperations
@testable import GatewayServer

/// Streams and polls whose grant is revoked, at each step of opening.
@Suite struct AccessSweepTests {
    /// Runs `body` with a gateway that has a registered client for each name.
    private func fixture(
        _ clients: [String] = ["phone", "tablet"],
        _ body: (StreamFixture, _ cursor: String) async throws -> Void
    ) async throws {
        let fixture = try StreamFixture(clients: clients)
        try await fixture.putCatalog()
        var cursor = ""
        for client in clients { cursor = try await fixture.register(client) }
        try await body(fixture, cursor)
        try await fixture.stop()
    }

    /// Revokes the grants of all clients but these, like a reload without its sweep.
    private func keep(_ clients: [String], _ fixture: StreamFixture) {
        let authorizer = fixture.admission.authorizer
        authorizer.access.grants.replace(
            with: clients.map { .init(uri: $0, app: StreamFixture.app, scopes: [.client]) })
        authorizer.access.revision.advance()
    }

    private func sweep(_ fixture: StreamFixture) {
        let policy = fixture.admission.authorizer.access.policy
        for shard in fixture.loops.all { shard.endStreams(notAdmittedBy: policy) }
    }

    /// Waits until this number of streams is open.
    private func settle(_ fixture: StreamFixture, _ count: Int) async throws {
        try await eventually("\(count) streams are open") { fixture.loops.openStreams == count }
    }

    @Test func `open streams end with their grant, and others go on`() async throws {
        try await fixture { fixture, cursor in
            var lost: [StreamFixture.Reader] = []
            for loop in [0, 1] {
                lost.append(try await fixture.open(fixture.admit("phone", since: cursor), on: loop))
            }
            let kept = try await fixture.open(fixture.admit("tablet", since: cursor))
            keep(["tablet"], fixture)
            sweep(fixture)
            try await settle(fixture, 1)
            for reader in lost { #expect(try await reader.said().isEnded) }
            #expect(!fixture.hasStream("phone"))
            try await fixture.change("Character", "panda")
            #expect(try await kept.said().stale == ["detail panda"])
            for reader in lost { #expect(try await reader.said().stale == []) }
        }
    }

    /// The sweep is over before the stream is opened.
    @Test func `a stream admitted by a grant that is gone is not opened`() async throws {
        try await fixture { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor)
            keep(["tablet"], fixture)
            sweep(fixture)
            do {
                _ = try await fixture.open(admitted)
                Issue.record("it was opened")
            } catch ShardLoop.Failure.refused(let error) {
                #expect(Problem.engine(error).status == 401)
            }
            #expect(!fixture.hasStream("phone"))
            await #expect { try await fixture.poll(admitted) } throws: {
                ($0 as? ProblemDetails)?.status == 401
            }
            _ = try await fixture.open(fixture.admit("tablet", since: cursor))
        }
    }

    @Test func `a poll that waits is answered 401 when its grant goes`() async throws {
        try await fixture { fixture, cursor in
            let admitted = try fixture.admit("phone", since: cursor, stream: false)
            async let answer = fixture.poll(admitted, wait: 60)
            try await settle(fixture, 1)
            keep([], fixture)
            sweep(fixture)
            do {
                let stale = try await answer.stale
                Issue.record("answered \(stale)")
            } catch let problem as ProblemDetails {
                #expect(problem.status == 401)
            }
            try await settle(fixture, 0)
        }
    }

    /// A sweep that begins during another one applies the newer policy to all streams.
    @Test func `sweeps that overlap end what the last one does not admit`() async throws {
        let clients = (0..<60).map { "client-\($0)" }
        try await fixture(clients) { fixture, cursor in
            for (number, client) in clients.enumerated() {
                _ = try await fixture.open(fixture.admit(client, since: cursor), on: number % 2)
            }
            for count in [40, 20, 5] {
                keep(Array(clients.prefix(count)), fixture)
                sweep(fixture)
            }
            try await settle(fixture, 5)
        }
    }
}
