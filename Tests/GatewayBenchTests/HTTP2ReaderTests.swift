import Testing

@testable import gateway_bench

/// What servers send over HTTP/2, cut at every byte.
@Suite struct HTTP2ReaderTests {
    private enum Heard: Equatable {
        case settings, end
        case ping(UInt64)
        case head(isOK: Bool)
        case body(String)
    }

    /// What the pieces said, bodies joined; reading stops with the end of the response.
    private static func read(_ pieces: [[UInt8]]) throws(HTTP2Fault) -> [Heard] {
        var reader = HTTP2Reader()
        var heard: [Heard] = []
        for piece in pieces {
            var place = 0
            pieceLoop: while true {
                switch try reader.next(piece.span, at: &place) {
                case .needsMore: break pieceLoop
                case .settings: heard.append(.settings)
                case .ping(let value): heard.append(.ping(value))
                case .head(let isOK): heard.append(.head(isOK: isOK))
                case .body(let range):
                    let text = String(decoding: piece[range], as: UTF8.self)
                    if case .body(let before)? = heard.last {
                        heard[heard.count - 1] = .body(before + text)
                    } else {
                        heard.append(.body(text))
                    }
                case .end: return heard + [.end]
                }
            }
        }
        return heard
    }

    private static func frame(
        _ kind: UInt8, flags: UInt8 = 0, stream: UInt8 = 1, _ payload: [UInt8]
    ) -> [UInt8] {
        // The reserved bit of the stream's number is set: it means nothing.
        [
            0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), kind, flags, 0x80, 0, 0,
            stream,
        ]
            + payload
    }

    private static let ok = frame(1, flags: 0x4, [0x88, 0x5F, 0x01, 0x61])

    private static func data(_ text: String, flags: UInt8 = 0) -> [UInt8] {
        frame(0, flags: flags, Array(text.utf8))
    }

    private static let connection: [[UInt8]] = [
        frame(4, stream: 0, [0, 3, 0, 0, 0, 100]),
        frame(4, flags: 0x1, stream: 0, []),
        frame(8, stream: 0, [0, 0, 0x10, 0]),
        // Padded, with a priority, and continued twice.
        frame(1, flags: 0x8 | 0x20, [3, 0, 0, 0, 0, 16, 0x88, 0x5F, 0, 0, 0]),
        frame(9, []),
        frame(9, flags: 0x4, [0x01, 0x61]),
        data("data: "),
        frame(0, flags: 0x8, [4] + Array("one\n".utf8) + [0, 0, 0, 0]),
        // Nothing but padding, and nothing at all.
        frame(0, flags: 0x8, [2, 0, 0]), frame(0, flags: 0x8, [0]), data(""),
        // A kind that nobody knows, on a stream that nobody opened.
        frame(0xFA, flags: 0xFF, stream: 9, [9, 9, 9]),
        frame(6, flags: 0x1, stream: 0, [0, 0, 0, 0, 0, 0, 0, 1]),
        frame(6, stream: 0, [1, 2, 3, 4, 5, 6, 7, 8]),
        data("\n", flags: 0x1),
    ]
    private static let expected: [Heard] = [
        .settings, .head(isOK: true), .body("data: one\n"), .ping(0x0102_0304_0506_0708),
        .body("\n"), .end,
    ]

    @Test func readsFramesWhereverTheyAreCut() throws {
        let bytes = Array(Self.connection.joined())
        for cut in 0...bytes.count {
            let heard = try Self.read([Array(bytes[..<cut]), Array(bytes[cut...])])
            #expect(heard == Self.expected, "cut at \(cut)")
        }
        #expect(try Self.read(bytes.map { [$0] }) == Self.expected, "byte by byte")
    }

    @Test func aFrameOfTheLongestPayloadIsReadAndALongerOneRefusedByItsHeader() throws {
        let longest = String(repeating: "x", count: HTTP2Reader.frameBytesMax)
        #expect(
            try Self.read([Self.ok + Self.data(longest)]) == [.head(isOK: true), .body(longest)])
        for kind: UInt8 in [0, 1, 4, 0xFA] {
            let header: [UInt8] = [0, 0x40, 0x01, kind, 0, 0, 0, 0, 1]
            #expect(throws: HTTP2Fault.oversizedFrame) { try Self.read([Self.ok + header]) }
        }
    }

    @Test(arguments: [
        // Status 204, a literal status, an update of the table's size, an empty block.
        frame(1, flags: 0x4, [0x89]), frame(1, flags: 0x4, [0x08, 0x03, 0x34, 0x30, 0x31]),
        frame(1, flags: 0x4, [0x20, 0x88]), frame(1, flags: 0x4, []),
        // 200 without a body.
        frame(1, flags: 0x5, [0x88]),
    ])
    func anythingButAStatus200WithABodyIsRefused(head: [UInt8]) throws {
        #expect(try Self.read([head]) == [.head(isOK: false)])
    }

    @Test func trailersEndTheResponse() throws {
        let trailers = Self.frame(1, flags: 0x5, [0])
        #expect(try Self.read([Self.ok, trailers]) == [.head(isOK: true), .end])
    }

    @Test(arguments: [
        (frame(3, [0, 0, 0, 8]), HTTP2Fault.reset(code: 8)),
        (frame(7, stream: 0, [0, 0, 0, 1, 0, 0, 0, 11, 0x78]), .goAway(code: 11)),
    ])
    func aServerThatGivesUpIsAFault(frame: [UInt8], fault: HTTP2Fault) {
        #expect(throws: fault) { try Self.read([Self.ok, frame]) }
        #expect(throws: fault) { try Self.read((Self.ok + frame).map { [$0] }) }
    }

    @Test(arguments: [
        // A body before its head, or on another stream; a head on another stream.
        data("x"), ok + frame(0, stream: 3, [0x78]), frame(1, flags: 0x4, stream: 3, [0x88]),
        // More padding than payload, and no room for its length or for the priority.
        ok + frame(0, flags: 0x8, [3, 0, 0]), ok + frame(0, flags: 0x8, []),
        frame(1, flags: 0x24, [0, 0, 0, 0]), frame(1, flags: 0x2C, [2, 0, 0, 0, 0, 0, 0]),
        // A block that is interrupted, by any frame, and a continuation of nothing.
        frame(1, [0x88]) + frame(4, stream: 0, []), frame(1, [0x88]) + frame(0xFA, []),
        frame(1, [0x88]) + frame(1, flags: 0x4, [0x88]), ok + frame(9, flags: 0x4, [0x88]),
        // A push, and lengths that cannot be.
        frame(5, flags: 0x4, [0, 0, 0, 2, 0x82]), frame(6, stream: 0, [0]), frame(3, [0]),
        frame(7, stream: 0, [0]),
    ])
    func brokenFramesAreRefused(bytes: [UInt8]) {
        #expect(throws: HTTP2Fault.malformedFrame) { try Self.read([bytes]) }
    }

    @Test func creditIsWhatCameWithItsPaddingAndGivenOnce() throws {
        var reader = HTTP2Reader()
        let bytes = Self.ok + Self.frame(0, flags: 0x8, [2, 0x78, 0, 0]) + Self.data("abc")
        var place = 0
        while try reader.next(bytes.span, at: &place) != .needsMore {}
        #expect(reader.takeCredit(atLeast: 8) == nil)
        #expect(reader.takeCredit(atLeast: 7) == 7)
        #expect(reader.takeCredit(atLeast: 1) == nil)
    }
}
