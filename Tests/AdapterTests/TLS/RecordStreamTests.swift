import COpenSSL
import Foundation
import GatewayTestSupport
import Glibc
import NIOCore
import Testing

@testable import GatewayTLS

/// Streams whose records the gateway makes itself, with OpenSSL on the other side.
@Suite(.serialized) struct RecordStreamTests {
    private let servers = TestServers()
    private static let suites = [
        "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
    ]

    /// Thousands of records in both directions, while the keys of both sides change.
    @Test(arguments: suites) func everyRecordArrives(suite: String) throws {
        let house = try servers.house {
            $0.settings.recordsPerKeyMax = 97
            $0.settings.readerInput = .unlimited
        }
        let (client, stream) = try house.stream { $0.suites = suite }
        #expect(client.cipher == suite)
        #expect(try !stream.keepsOpenSSL)
        var random = SystemRandomNumberGenerator()
        for round in 0..<3000 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0: #expect(SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED) == 1)
            case 1: #expect(SSL_key_update(client.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
            case 2...6: try client.write(pattern(round % 700 + 1, seed: round))
            default: break
            }
            let size = round % 50 == 0 ? 16_380 + round % 40 : round % 900 + 1
            let bytes = pattern(size, seed: round)
            #expect(try stream.send(bytes) == .sent)
            #expect(try client.read(size) == bytes)
        }
        #expect(stream.news.now.isEmpty)
        try stream.end([1, 2])
        #expect(try client.readToGoodbye() == [1, 2])
    }

    /// Whatever both sides sent before, the record numbers continue from there.
    @Test(arguments: suites) func theRecordsBeforeAreCounted(suite: String) throws {
        let house = try servers.house()
        for round in 0..<12 {
            let (client, connection) = try house.connect(round) { $0.suites = suite }
            for place in 0..<round {
                try client.write(pattern(place * 10 + 1))
                try connection.write(pattern(place * 300 + 1))
            }
            connection.received.wait { $0.count == (0..<round).reduce(0) { $0 + $1 * 10 + 1 } }
            let stream = try #require(try house.adopt(connection, name: UInt64(round)))
            #expect(try !stream.keepsOpenSSL)
            #expect(try stream.send([9]) == .sent)
            for place in 0..<round {
                #expect(try client.read(place * 300 + 1) == pattern(place * 300 + 1))
            }
            #expect(try client.read(1) == [9])
            try client.write([1])
            client.sayGoodbye()
            stream.news.wait { $0 == [.inputClosed] }
            #expect(try client.readToGoodbye().isEmpty)
        }
    }

    @Test func aResumedSessionAndItsSuccessorToo() throws {
        let house = try servers.house()
        var session: OpaquePointer?
        for round in 0..<4 {
            let (client, stream) = try house.stream(round) { $0.session = session }
            #expect(client.isResumed == (round > 0))
            #expect(try !stream.keepsOpenSSL)
            #expect(try stream.send([UInt8(round)]) == .sent)
            // The ticket arrives before this byte.
            #expect(try client.read(1) == [UInt8(round)])
            if let session { SSL_SESSION_free(session) }
            session = client.session
            // Without `close_notify` the client's OpenSSL drops the session.
            client.sayGoodbye()
        }
        if let session { SSL_SESSION_free(session) }
    }

    @Test func aClientWithCertificateToo() throws {
        let made = Certificates.made
        let context = try TestServer.context {
            $0.clientCertificates = .required(authorities: .file(made.ca))
        }
        let house = try servers.house(context)
        let (client, stream) = try house.stream {
            $0.certificate = (made.client, made.clientKey)
        }
        #expect(try !stream.keepsOpenSSL)
        #expect(try stream.send([3]) == .sent)
        #expect(try client.read(1) == [3])
    }

    /// Only OpenSSL can continue when keys have changed or a record has begun.
    @Test func whatCannotBeTakenOverStaysWithOpenSSL() throws {
        let house = try servers.house()
        let (changed, changing) = try house.connect(0)
        #expect(SSL_key_update(changed.ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
        try changed.write([1])
        changing.received.wait { $0 == [1] }
        let first = try #require(try house.adopt(changing, name: 0))
        #expect(try first.keepsOpenSSL)

        let (half, halved) = try house.connect(1)
        let record = try half.withheld { try half.write(pattern(100)) }
        try half.sendPlain(Array(record[..<40]))
        let whole = try half.withheld { try half.write([2]) }
        // Only the connection itself can tell when the half has reached OpenSSL.
        try blockUntil("the half has come") {
            try halved.onLoop { $0.ssl.map { SSL_has_pending($0) == 1 } ?? false }
        }
        let stream = try #require(try house.adopt(halved, name: 1))
        #expect(try stream.keepsOpenSSL)
        try half.sendPlain(Array(record[40...]) + whole)
        for (client, stream) in [(changed, first), (half, stream)] {
            #expect(try stream.send(pattern(50)) == .sent)
            #expect(try client.read(50) == pattern(50))
            client.sayGoodbye()
            stream.news.wait { $0 == [.inputClosed] }
        }
    }

    /// Nothing of a record is pending in OpenSSL when exactly its header has come.
    @Test(arguments: [1, 4, 5, 6]) func aBegunRecordStaysWithOpenSSL(count: Int) throws {
        let house = try servers.house()
        let (client, connection) = try house.connect()
        let record = try client.withheld { try client.write(pattern(100)) }
        try client.sendPlain(Array(record[..<count]))
        try blockUntil("the beginning has come") {
            try connection.onLoop { tls in
                tls.ssl.map {
                    SSL_has_pending($0) == 1 || String(cString: SSL_rstate_string($0)) == "RB"
                } ?? false
            }
        }
        let stream = try #require(try house.adopt(connection))
        #expect(try stream.keepsOpenSSL)
        try client.sendPlain(Array(record[count...]))
        #expect(try stream.send(pattern(50)) == .sent)
        #expect(try client.read(50) == pattern(50))
        client.sayGoodbye()
        stream.news.wait { $0 == [.inputClosed] }
    }

    /// Records of our own are as long as they may be without the extension.
    @Test func aPeerThatWantsShortRecordsStaysWithOpenSSL() throws {
        let house = try servers.house()
        let (client, stream) = try house.stream {
            $0.fragmentLength = UInt8(TLSEXT_max_fragment_length_512)
        }
        #expect(try stream.keepsOpenSSL)
        #expect(try stream.send(pattern(5_000)) == .sent)
        #expect(try client.read(5_000) == pattern(5_000))
    }

    /// A record number that lags behind would be used twice: without counts nothing is taken over.
    @Test func uncountedRecordsStayWithOpenSSL() throws {
        let context = try TestServer.context()
        SSL_CTX_set_msg_callback(context.pointer, nil)
        let house = try servers.house(context)
        let (client, connection) = try house.connect()
        let stream = try #require(try house.adopt(connection))
        #expect(try stream.keepsOpenSSL)
        #expect(try stream.send(pattern(50)) == .sent)
        #expect(try client.read(50) == pattern(50))
    }

    /// Records cut into pieces, several in one piece, and pieces of one byte.
    @Test func recordsMayComeInPieces() throws {
        let house = try servers.house()
        let (client, stream) = try house.stream()
        var one: Int32 = 1
        setsockopt(client.socket, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
        var bytes: [UInt8] = []
        for round in 0..<30 {
            bytes += try client.withheld {
                try client.write(pattern(round * 90 + 1, seed: round))
                SSL_key_update(client.ssl, SSL_KEY_UPDATE_REQUESTED)
                try client.write([UInt8(round)])
            }
        }
        var size = 1
        while !bytes.isEmpty {
            let piece = Array(bytes.prefix(size))
            bytes.removeFirst(piece.count)
            try client.sendPlain(piece)
            size = size % 211 + 1
        }
        #expect(try stream.send([5]) == .sent)
        #expect(try client.read(1) == [5])
        client.sayGoodbye()
        stream.news.wait { $0 == [.inputClosed] }
    }

    /// A peer that breaks the protocol gets the reason, protected by our keys.
    @Test(arguments: [
        ([UInt8](repeating: 23, count: 3) + [0, 60] + pattern(60), "bad record mac"),
        ([23, 3, 3, 0, 16] + pattern(16), "bad record mac"),
        ([23, 3, 3, 255, 255], "record overflow"),
        ([22, 3, 3, 0, 4, 0, 0, 0, 0], "unexpected message"),
        ([20, 3, 3, 0, 1, 1], "unexpected message"),
        ([21, 3, 3, 0, 2, 1, 0], "unexpected message"),
        (Array("GET / HTTP/1.1\r\n\r\n".utf8), "unexpected message"),
    ]) func aViolationIsNamed(bytes: [UInt8], reason: String) throws {
        let house = try servers.house { $0.settings.closeTimeout = .milliseconds(50) }
        let (client, stream) = try house.stream()
        try client.sendPlain(bytes)
        let error = #expect(throws: TestFailure.self) { try client.read(1) }
        #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
        stream.news.wait { $0 == [.inputClosed] }
        #expect(try stream.send([1]) == .refused)
        try house.streams.loop.flatSubmit { house.streams.emptied() }.wait()
    }

    /// How a stream ends, as its reader sees it.
    enum End: Sendable {
        case goodbye
        /// The end of TCP alone.
        case nothing
        /// An alert that OpenSSL describes with these words.
        case alert(String)
    }

    /// A reader's messages about the connection, in valid records.
    @Test(
        arguments: [
            ([(.alert, [1, 0]), (.applicationData, [1])], .goodbye),
            // It may say first that the user has left.
            ([(.alert, [1, 90]), (.alert, [1, 0])], .goodbye),
            ([(.alert, [2, 80])], .nothing),
            ([(.alert, [2])], .alert("decode error")),
            ([(.handshake, [24, 0, 0, 1, 2])], .alert("illegal parameter")),
            ([(.handshake, [20, 0, 0, 0])], .alert("unexpected message")),
            // The next keys are announced, and not used.
            (
                [(.handshake, [24, 0, 0, 1, 0]), (.applicationData, [1])], .alert("bad record mac")
            ),
        ] as [([(RecordContent, [UInt8])], End)])
    func whatAReaderSaysEndsItsStream(records: [(RecordContent, [UInt8])], end: End) throws {
        let house = try servers.house()
        let sealing = try SealingClient(house.server)
        let connection = try house.server.connection()
        connection.seen.wait { $0.first == .open(nil) }
        let stream = try #require(try house.adopt(connection))
        #expect(try !stream.keepsOpenSSL)
        try sealing.send(records)
        var failure: String?
        do {
            _ = try sealing.client.readToGoodbye()
        } catch {
            failure = "\(error)"
        }
        switch end {
        case .goodbye: #expect(failure == nil)
        case .nothing: #expect(failure?.contains("alert") == false)
        case .alert(let words): #expect(failure?.contains(words) == true, "\(failure ?? "")")
        }
        stream.news.wait { $0 == [.inputClosed] }
        #expect(try stream.send([1]) == .refused)
    }

    /// A record that is changed, repeated or omitted.
    @Test func aReplayIsNoRecord() throws {
        let house = try servers.house { $0.settings.closeTimeout = .milliseconds(50) }
        for attack in 0..<3 {
            let (client, stream) = try house.stream(attack)
            let first = try client.withheld { try client.write([1]) }
            let second = try client.withheld { try client.write([2]) }
            switch attack {
            case 0: try client.sendPlain(first + first)
            case 1: try client.sendPlain(second)
            default:
                try client.sendPlain(first + second.dropLast() + [second[second.count - 1] ^ 1])
            }
            let error = #expect(throws: TestFailure.self) { try client.read(1) }
            #expect(error?.description.contains("bad record mac") == true)
            stream.news.wait { $0 == [.inputClosed] }
        }
    }
}
