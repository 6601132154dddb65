import COpenSSL
import Testing

@testable import GatewayTLS

/// The rotation of ticket keys, over real connections.
@Suite(.serialized) struct TicketTests {
    /// Connects, and returns whether the session was resumed, and the session with its latest ticket.
    private func connect(
        _ server: TestServer, _ version: Int32, resuming session: OpaquePointer? = nil
    ) throws -> (isResumed: Bool, session: OpaquePointer) {
        let client = try server.client {
            $0.version = version
            $0.session = session
        }.handshake()
        // Reading also processes the ticket that TLS 1.3 sends after the handshake.
        try client.write([1])
        #expect(try client.read(1) == [1])
        client.sayGoodbye()
        return (client.isResumed, try #require(client.session))
    }

    private func ticket(_ session: OpaquePointer) -> [UInt8] {
        var ticket: UnsafePointer<UInt8>?
        var count = 0
        SSL_SESSION_get0_ticket(session, &ticket, &count)
        return Array(UnsafeBufferPointer(start: ticket, count: count))
    }

    /// The name of the key that sealed a session's ticket.
    private func keyName(_ session: OpaquePointer) throws -> [UInt8] {
        let ticket = ticket(session)
        try #require(ticket.count > TicketKey.nameBytes)
        return Array(ticket.prefix(TicketKey.nameBytes))
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a ticket resumes across a change of keys, and is renewed`(version: Int32) throws {
        let clock = Record<Int64>(0)
        let keys = TicketKeys(now: { clock.now })
        let server = try TestServer(TestServer.context { $0.ticketKeys = keys })
        defer { server.stop() }
        let first = try connect(server, version)
        let soon = try connect(server, version, resuming: first.session)
        #expect(!first.isResumed && soon.isResumed)
        #expect(try keyName(soon.session) == keyName(first.session))
        // In TLS 1.3 a client should use a ticket once, so it gets another.
        #expect((ticket(soon.session) != ticket(first.session)) == (version == TLS1_3_VERSION))

        clock.change { $0 = TicketKeyRing.period + 1 }
        let later = try connect(server, version, resuming: first.session)
        #expect(later.isResumed)
        #expect(try keyName(later.session) != keyName(first.session))

        clock.change { $0 = 3 * TicketKeyRing.period }
        let old = try connect(server, version, resuming: first.session)
        let renewed = try connect(server, version, resuming: later.session)
        #expect(!old.isResumed && renewed.isResumed)
        let counts = server.counters.snapshot()
        #expect(counts.handshakesFull == 2 && counts.handshakesResumed == 3)
        #expect(counts.handshakesFailed.values.allSatisfy { $0 == 0 })
        for one in [first, soon, later, old, renewed] { SSL_SESSION_free(one.session) }
    }

    @Test func `a forged or foreign ticket costs a full handshake and nothing else`() throws {
        let server = try TestServer()
        defer { server.stop() }
        let other = try TestServer()
        defer { other.stop() }
        let foreign = try connect(other, TLS1_3_VERSION)
        defer { SSL_SESSION_free(foreign.session) }
        let answer = try connect(server, TLS1_3_VERSION, resuming: foreign.session)
        defer { SSL_SESSION_free(answer.session) }
        #expect(!answer.isResumed)
        #expect(server.counters.snapshot().handshakesFailed.values.allSatisfy { $0 == 0 })
    }
}
