import COpenSSL
import GatewayTestSupport
import Testing

@testable import GatewayTLS

/// The rotation of ticket keys, over real connections.
@Suite(.serialized) struct TicketTests {
    private let servers = TestServers()

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
        let server = try servers.start(TestServer.context { $0.ticketKeys = keys })
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
        let server = try servers.start()
        let other = try servers.start()
        let foreign = try connect(other, TLS1_3_VERSION)
        defer { SSL_SESSION_free(foreign.session) }
        let answer = try connect(server, TLS1_3_VERSION, resuming: foreign.session)
        defer { SSL_SESSION_free(answer.session) }
        #expect(!answer.isResumed)
        #expect(server.counters.snapshot().handshakesFailed.values.allSatisfy { $0 == 0 })
    }
}

/// The keys of session tickets, without OpenSSL and without a clock.
@Suite struct TicketKeyRingTests {
    private static let period = TicketKeyRing.period

    /// Returns a key whose name consists of one byte.
    private static func key(_ name: UInt8, begins: Int64) -> TicketKey? {
        TicketKey(begins: begins) {
            $0.copyBytes(from: repeatElement(name, count: $0.count))
            return true
        }
    }

    private static func opens(_ ring: TicketKeyRing, _ name: UInt8, at now: Int64) -> Bool {
        [UInt8](repeating: name, count: TicketKey.nameBytes)
            .withUnsafeBytes { ring.opening($0, at: now) != nil }
    }

    @Test func `a key seals for half a day, and opens for a day longer`() throws {
        var ring = TicketKeyRing()
        var made: [Int64] = []
        func seal(_ now: Int64) -> UInt8? {
            ring.sealing(at: now) { begins in
                made.append(begins)
                return Self.key(UInt8(made.count), begins: begins)
            }?.name[0]
        }
        #expect(!Self.opens(ring, 1, at: 5))
        #expect(seal(5) == 1)
        #expect(seal(4 + Self.period) == 1)
        #expect(seal(5 + Self.period) == 2)
        #expect(seal(5 + 2 * Self.period) == 3)
        #expect(Self.opens(ring, 1, at: 4 + 3 * Self.period))
        #expect(!Self.opens(ring, 1, at: 5 + 3 * Self.period), "nobody connected for a while")
        #expect(seal(5 + 3 * Self.period) == 4)
        #expect(ring.keys.map { $0.name[0] } == [4, 3, 2])
        #expect(made == (0...3).map { 5 + $0 * Self.period })
        // After a long time none of the old keys is left.
        #expect(seal(5 + 90 * Self.period) == 5)
        #expect(ring.keys.count == 1)
    }

    @Test func `without randomness no ticket is sealed, and the old ones open`() {
        var ring = TicketKeyRing()
        _ = ring.sealing(at: 0) { Self.key(1, begins: $0) }
        #expect(ring.sealing(at: Self.period) { _ in nil } == nil)
        #expect(Self.opens(ring, 1, at: Self.period))
        #expect(TicketKey(begins: 0) { _ in false } == nil)
    }

    @Test func `keys from elsewhere are used from their time on`() throws {
        var ring = TicketKeyRing()
        _ = ring.sealing(at: 0) { Self.key(1, begins: $0) }
        ring.add([Self.key(7, begins: 100), Self.key(1, begins: 0)].compactMap { $0 }, at: 50)
        #expect(ring.keys.map { $0.name[0] } == [7, 1])
        #expect(ring.sealing(at: 99) { _ in nil }?.name[0] == 1)
        #expect(Self.opens(ring, 7, at: 99), "another node may be ahead")
        #expect(ring.sealing(at: 100) { _ in nil }?.name[0] == 7)
        ring.add((10...20).compactMap { Self.key($0, begins: Int64($0)) }, at: 200)
        #expect(ring.keys.count == TicketKeyRing.keysMax)
    }
}
