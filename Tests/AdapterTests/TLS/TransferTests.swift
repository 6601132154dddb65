import COpenSSL
import Foundation
import GatewayTLS
import GatewayTestSupport
import Glibc
import NIOCore
import Testing

@Suite(.serialized) struct TransferTests {
    private let servers = TestServers()

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func aLotGoesBothWaysInOddPieces(version: Int32) throws {
        let server = try servers.start()
        let client = try server.client { $0.version = version }.handshake()
        let all = pattern(3_000_000)
        var start = 0
        var size = 1
        while start < all.count {
            let end = min(all.count, start + size)
            try client.write(Array(all[start..<end]))
            start = end
            size = size * 7 % 60_013 + 1
        }
        #expect(try client.read(all.count) == all)
    }

    @Test func twoLoopsShareAContextWhileItIsReplaced() throws {
        let server = try servers.start { $0.threads = 2 }
        let failures = Record<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { worker in
            do {
                for round in 0..<12 {
                    let client = try server.client {
                        $0.version = round % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION
                    }.handshake()
                    let bytes = pattern(20_000 + worker, seed: worker * 100 + round)
                    try client.write(bytes)
                    guard try client.read(bytes.count) == bytes else {
                        failures.change { $0.append("bytes differ") }
                        return
                    }
                    if worker == 0 { server.identity.replace(with: try TestServer.context()) }
                }
            } catch {
                failures.change { $0.append("\(error)") }
            }
        }
        #expect(failures.now.isEmpty)
        #expect(server.counters.snapshot().handshakesFull == 96)
        #expect(server.counters.snapshot().handshakesFailed.values.allSatisfy { $0 == 0 })
    }

    @Test func recordsCutAnywhereArrive() throws {
        let server = try servers.start()
        let client = try server.client().handshake()
        let bytes = pattern(40_000)
        try client.writeInPieces(bytes, sizes: [1, 4, 5, 6, 1000, 16_401, 2, 333])
        #expect(try client.read(bytes.count) == bytes)
        try client.writeInPieces(pattern(300), sizes: [1])
        #expect(try client.read(300) == pattern(300))
    }

    @Test func whatOneFlushCoversIsJoinedIntoOneRecord() throws {
        let server = try servers.start { $0.echoes = false }
        let client = try server.client().handshake()
        let connection = try server.connection()
        connection.seen.wait { $0.contains(.open(nil)) }
        let channel = connection.channel
        try channel.eventLoop.submit {
            for index in 0..<100 {
                channel.write(ByteBuffer(bytes: pattern(10, seed: index)), promise: nil)
            }
            channel.flush()
        }.wait()
        var piece = [UInt8](repeating: 0, count: 20_000)
        // One call reads one record.
        #expect(SSL_read(client.ssl, &piece, 20_000) == 1000)
        #expect(Array(piece[..<1000]) == (0..<100).flatMap { pattern(10, seed: $0) })
        // Small, large and small again: full records as far as possible.
        try channel.eventLoop.submit {
            channel.write(ByteBuffer(bytes: pattern(100)), promise: nil)
            channel.write(ByteBuffer(bytes: pattern(40_000)), promise: nil)
            channel.write(ByteBuffer(bytes: pattern(50)), promise: nil)
            channel.flush()
        }.wait()
        var sizes: [Int] = []
        var all: [UInt8] = []
        while all.count < 40_150 {
            let count = Int(SSL_read(client.ssl, &piece, 20_000))
            guard count > 0 else { break }
            sizes.append(count)
            all.append(contentsOf: piece[..<count])
        }
        #expect(sizes == [16_384, 16_384, 7382])
        #expect(all == pattern(100) + pattern(40_000) + pattern(50))
    }

    @Test func emptyWritesSucceedAndSendNothing() throws {
        let server = try servers.start()
        let client = try server.client().handshake()
        let connection = try server.connection()
        connection.seen.wait { $0.contains(.open(nil)) }
        try connection.write([])
        try connection.write([5])
        #expect(try client.read(1) == [5])
    }

    @Test func aKeyUpdateIsAnsweredAndGoesUnnoticed() throws {
        let server = try servers.start()
        let client = try server.client { $0.version = TLS1_3_VERSION }.handshake()
        for round in 0..<20 {
            #expect(SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            try client.write(pattern(100, seed: round))
            #expect(try client.read(100) == pattern(100, seed: round))
        }
    }

    @Test func aPeerThatDemandsAnswersAndReadsNoneIsClosed() throws {
        let server = try servers.start {
            $0.sendBuffer = 4096
            $0.settings.closeTimeout = .milliseconds(100)
            $0.settings.emptyRecords = .unlimited
        }
        let client = try server.client {
            $0.version = TLS1_3_VERSION
            $0.receiveBuffer = 2048
        }.handshake()
        let connection = try server.connection()
        var sent = 0
        while sent < 100_000, SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED) == 1,
            SSL_do_handshake(client.ssl) == 1
        {
            sent += 1
        }
        connection.seen.wait { $0.contains(.inactive) }
        #expect(connection.seen.now.contains(.failed(.protocolViolation(.unreadAnswers))))
    }
}

extension RawClient {
    /// Encrypts `bytes` and sends the ciphertext in pieces of the given sizes, cyclically.
    func writeInPieces(_ bytes: [UInt8], sizes: [Int]) throws {
        var on: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, UInt32(MemoryLayout<Int32>.size))
        var rest = try withheld { try write(bytes) }[...]
        var round = 0
        while !rest.isEmpty {
            let piece = rest.prefix(sizes[round % sizes.count])
            try sendPlain(Array(piece))
            rest = rest.dropFirst(piece.count)
            round += 1
        }
    }
}
