import COpenSSL
import NIOCore
import Testing

@testable import GatewayTLS

/// Records without content: a peer may send some, but not little else.
@Suite(.serialized) struct EmptyRecordTests {
    private let reported = Record<[PeerViolation]>([])

    private func server() throws -> TestServer {
        var options = TestServer.Options()
        // Otherwise a flood that takes seconds is none.
        options.settings.emptyRecords.perSecond = 1
        options.settings.onViolation = { [reported] _, violation, _ in
            reported.change { $0.append(violation) }
        }
        return try TestServer(nil, options)
    }

    /// Until a connection is open, only the bytes of its input count.
    private func expectAnswer(to client: RawClient) throws {
        #expect(try client.read(1) == [0])
    }

    private func expectEnd(of client: RawClient, at server: TestServer) throws {
        let error = #expect(throws: RawClient.Failed.self) {
            while true { _ = try client.read(1) }
        }
        #expect(error?.description.contains("unexpected message") == true, "\(error as Any)")
        let connection = try server.connection()
        connection.seen.wait { $0.contains(.failed(.protocolViolation(.emptyRecords))) }
        server.waitForCounts("one end") { $0.connectionsEnded[.emptyRecords] == 1 }
        #expect(reported.now == [.emptyRecords])
    }

    /// Records of one byte pay for themselves, not for a key update each.
    @Test(arguments: [false, true]) func keyUpdatesEndAConnection(withContent: Bool) throws {
        let server = try server()
        defer { server.stop() }
        let client = try server.client { $0.version = TLS1_3_VERSION }.handshake()
        try client.write([0])
        try expectAnswer(to: client)
        let flood = try client.withheld {
            for _ in 0..<2_000 {
                SSL_key_update(client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED)
                SSL_do_handshake(client.ssl)
                if withContent { try client.write([1]) }
            }
        }
        try client.sendPlain(flood)
        try expectEnd(of: client, at: server)
    }

    /// OpenSSL itself ends a connection after 32 empty records in a row.
    @Test func emptyRecordsEndAConnection() throws {
        let server = try server()
        defer { server.stop() }
        let sealing = try SealingClient(server)
        let nothing = (RecordContent.applicationData, [UInt8]())
        try sealing.send([(.applicationData, [0])])
        try expectAnswer(to: sealing.client)
        for _ in 0..<40 {
            try sealing.send(Array(repeating: nothing, count: 31) + [(.applicationData, [1])])
        }
        try expectEnd(of: sealing.client, at: server)
    }

    /// How a client may cut and pad its content.
    @Test(arguments: [0, 1_024, 4_096, 16_384]) func contentIsFree(padding: Int) throws {
        let server = try server()
        defer { server.stop() }
        let client = try server.client { $0.version = TLS1_3_VERSION }.handshake()
        SSL_set_block_padding(client.ssl, padding)
        let (count, pause) = padding == 0 ? (20_000, 1_000) : (200, 20)
        for number in 0..<count {
            try client.write([UInt8(truncatingIfNeeded: number)])
            if number % pause == 0 { SSL_key_update(client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) }
        }
        #expect(try client.read(count) == (0..<count).map { UInt8(truncatingIfNeeded: $0) })
        // The beginning of the large record arrives with the small one.
        for round in 0..<100 {
            try client.write(pattern(200, seed: round))
            try client.write(pattern(16_000, seed: round))
            #expect(
                try client.read(16_200) == pattern(200, seed: round) + pattern(16_000, seed: round))
        }
        #expect(reported.now == [])
    }
}
