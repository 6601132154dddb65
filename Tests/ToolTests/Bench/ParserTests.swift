import Testing

@testable import gateway_bench

/// Streams cut at every byte, and in pieces of every size.
@Suite struct EventScannerTests {
    private static let stream = Array(
        """
        retry: 2000

        id: first
        event: reload
        data: a data: in the middle counts once

        id: second

        : data: in a comment does not count
        dat: is another field
        data:without the space is not what the servers write
        idle: no id
        id: third
        data: b
        data: c


        """.utf8)

    private static func scan(_ pieces: [[UInt8]], keepsID: Bool = true) -> (Int, EventScanner) {
        var scanner = EventScanner()
        scanner.keepsID = keepsID
        let count = pieces.reduce(0) { $0 + scanner.scan($1.span) }
        return (count, scanner)
    }

    @Test func countsDataLinesWhereverTheStreamIsCut() {
        for cut in 0...Self.stream.count {
            let pieces = [Array(Self.stream[..<cut]), Array(Self.stream[cut...])]
            let (count, scanner) = Self.scan(pieces)
            #expect(count == 3, "cut at \(cut)")
            #expect(scanner.id == "third", "cut at \(cut)")
            #expect(scanner.idCount == 3, "cut at \(cut)")
        }
        for size in 1...Self.stream.count {
            let pieces = stride(from: 0, to: Self.stream.count, by: size).map {
                Array(Self.stream[$0..<min($0 + size, Self.stream.count)])
            }
            #expect(Self.scan(pieces).0 == 3, "pieces of \(size)")
            #expect(Self.scan(pieces).1.id == "third", "pieces of \(size)")
        }
    }

    @Test func aLineCountsWithItsEnd() {
        var scanner = EventScanner()
        #expect(scanner.scan(Array("data: half".utf8).span) == 0)
        #expect(scanner.scan(Array(" and half\n".utf8).span) == 1)
    }

    @Test func anIDIsKeptOnlyWhenAskedForAndNeverWithoutBound() {
        let long = Array("id: \(String(repeating: "x", count: 10_000))\n".utf8)
        #expect(Self.scan([long], keepsID: false).1.id == "")
        #expect(Self.scan([long]).1.id.count == EventScanner.idBytesMax)
        #expect(Self.scan([Array("id: one\r\n".utf8)]).1.id == "one")
    }
}

/// Responses cut at every byte.
@Suite struct ResponseReaderTests {
    /// The content of a connection's bytes.
    private struct Heard: Equatable {
        var heads: [Int] = []
        var bodies: [String] = [""]
        var isStream: [Bool] = []
    }

    private static func read(_ pieces: [[UInt8]]) throws(ResponseFault) -> Heard {
        var reader = ResponseReader()
        var heard = Heard()
        for piece in pieces {
            var place = 0
            pieceLoop: while true {
                switch try reader.next(piece.span, at: &place) {
                case .needsMore: break pieceLoop
                case .head(let head):
                    heard.heads.append(head.status)
                    heard.isStream.append(head.isEventStream)
                case .body(let range):
                    heard.bodies[heard.bodies.count - 1] += String(
                        decoding: piece[range], as: UTF8.self)
                case .end: heard.bodies.append("")
                }
            }
        }
        return heard
    }

    private static func readWhole(_ text: String) throws(ResponseFault) -> Heard {
        try read([Array(text.utf8)])
    }

    private static let responses = [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length:  0 \r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            + "Transfer-Encoding: chunked\r\n\r\n"
            + "5;x=\"1\"\r\ndata:\r\n1A\r\n abcdefghijklmnopqrstuvwx\n\r\n0\r\nTrailer: y\r\n\r\n",
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\nno",
    ]
    private static let expected = Heard(
        heads: [202, 204, 200, 200, 500],
        bodies: ["hello", "", "", "data: abcdefghijklmnopqrstuvwx\n", "no", ""],
        isStream: [false, false, false, true, false])

    @Test func readsPipelinedResponsesWhereverTheyAreCut() throws {
        let bytes = Array(Self.responses.joined().utf8)
        for cut in 0...bytes.count {
            let heard = try Self.read([Array(bytes[..<cut]), Array(bytes[cut...])])
            #expect(heard == Self.expected, "cut at \(cut)")
        }
        #expect(try Self.read(bytes.map { [$0] }) == Self.expected, "byte by byte")
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ])
    func aResponseWithoutBodyEndsWithoutAnotherByte(text: String) throws {
        #expect(try Self.readWhole(text).bodies == ["", ""])
    }

    @Test func aBodyWithoutLengthEndsWithTheConnection() throws {
        let heard = try Self.readWhole("HTTP/1.0 200 OK\r\n\r\nas long\r\n\r\nas it lasts")
        #expect(heard.bodies == ["as long\r\n\r\nas it lasts"])
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n12345678\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    ])
    func brokenChunksAreRefused(text: String) {
        #expect(throws: ResponseFault.framing) { try Self.readWhole(text) }
    }

    @Test(arguments: [
        "SSH-2.0\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    ])
    func brokenHeadsAreRefused(text: String) {
        #expect(throws: ResponseFault.malformedHead) { try Self.readWhole(text) }
    }

    @Test func aHeadWithoutEndIsRefused() {
        let text = "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 20_000)
        #expect(throws: ResponseFault.headTooLong) { try Self.readWhole(text) }
    }
}
