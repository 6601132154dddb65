import GatewayCore
import GatewayDelivery
import GatewaySigning
import GatewayTestSupport
import NIOCore
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// The streams and the waiting polls that a client may have, and how long a token lets them be.
@Suite struct StreamPlacesTests {
    private static let clients = [("tablet", "owl"), ("phone", "panda")]

    @Test func `a client that opens streams without end holds four, and takes nobody else's place`()
        async throws
    {
        try await StreamFixture.running(Self.clients) { fixture, cursor in
            let other = try await fixture.open(fixture.admit("tablet", since: cursor))
            var readers: [StreamFixture.Reader] = []
            for number in 0..<20 {
                readers.append(
                    try await fixture.open(fixture.admit("phone", since: cursor), on: number % 2))
                // What is replaced ends with the next turn of its loop.
                for shard in fixture.loops.all { try await shard.loop.submit {}.get() }
                #expect(fixture.loops.openStreams == 1 + min(number + 1, 4))
            }
            try await fixture.change("Character", "panda")
            for (number, reader) in readers.enumerated() {
                let said = try await reader.said()
                #expect(said.isEnded == (number < 16))
                #expect(said.stale == (number < 16 ? [] : ["detail panda"]))
            }
            #expect(try await !other.said().isEnded)
        }
    }

    @Test func `a poll too many is never refused: the oldest is, and no stream ends for it`()
        async throws
    {
        try await StreamFixture.running(Self.clients) { fixture, cursor in
            var readers: [StreamFixture.Reader] = []
            for _ in 0..<4 {
                readers.append(try await fixture.open(fixture.admit("phone", since: cursor)))
            }
            let admitted = try fixture.admit("phone", since: cursor, stream: false)
            func poll(on loop: Int) -> Task<[String], any Error> {
                Task { try await fixture.poll(admitted, on: loop, wait: 50).stale }
            }
            let oldest = poll(on: 0)
            try await eventually("it waits") { fixture.loops.openStreams == 5 }
            let others = (0..<4).map { poll(on: $0 % 2) }
            await #expect {
                try await oldest.value
            } throws: {
                ($0 as? ProblemDetails)?.code == "too-many-streams"
            }
            try await eventually("the others wait") { fixture.loops.openStreams == 8 }
            for reader in readers { #expect(try await !reader.said().isEnded) }
            try await fixture.change("Character", "panda")
            for other in others { #expect(try await other.value == ["detail panda"]) }
        }
    }

    /// Admission lets a token live 60 s longer than it says, because clocks differ.
    @Test func `a stream lasts as long as requests with its token are admitted`() async throws {
        let clock = HeldClock()
        try await StreamFixture.running(Self.clients, clock: clock.gateway) { fixture, cursor in
            let access = fixture.admission.authorizer.access
            let token = VerifiedToken(
                issuer: "issuer", subject: "phone", app: StreamFixture.app, scopes: [.client],
                expires: clock.wall / 1_000 - 30, kid: "")
            let admitted = try fixture.admission.admit(
                StreamAdmission.Identified(
                    key: StreamFixture.key("phone"), token: token,
                    grant: StreamGrant(token, at: access.revision.current, by: access),
                    registration: nil, wantsStream: true, kinds: nil, cursor: cursor,
                    origin: nil))
            let reader = try await fixture.open(admitted)
            let shard = fixture.loops.all[0]
            for (milliseconds, isOver): (Int64, Bool) in [(29_000, false), (1_000, true)] {
                clock.advance(to: clock.now + milliseconds)
                try await shard.loop.submit { shard.tick() }.get()
                #expect(try await reader.said().isEnded == isOver)
            }
        }
    }
}
