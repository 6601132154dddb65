import Testing

@testable import gateway_bench

/// The bytes of HTTP/2 servers, cut at every byte.
@Suite struct HTTP2StreamTests {
    private static func frame(
        _ kind: UInt8, flags: UInt8 = 0, stream: UInt8 = 1, _ payload: [UInt8]
    ) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), kind, flags, 0, 0, 0, stream]
            + payload
    }

    private static let settings = frame(4, stream: 0, [0, 3, 0, 0, 0, 100])
    /// `:status: 200` and `a: b`, by RFC 7541.
    private static let ok = frame(1, flags: 0x4, [0x88, 0x00, 0x01, 0x61, 0x01, 0x62])
    /// The start of a response, after the acknowledgement of the client's settings.
    private static let start = settings + frame(4, flags: 0x1, stream: 0, []) + ok

    private static func data(_ text: String, flags: UInt8 = 0) -> [UInt8] {
        frame(0, flags: flags, Array(text.utf8))
    }

    /// Feeds pieces to a stream with a request; returns the stream, and the whole body.
    private static func read(
        _ pieces: [[UInt8]]
    ) throws -> (stream: HTTP2Stream, body: String, isSound: Bool) {
        let stream = try HTTP2Stream()
        stream.get("/a", fields: [])
        _ = stream.outgoing()
        var (body, isSound): ([UInt8], Bool) = ([], true)
        for piece in pieces where isSound {
            isSound = piece.withUnsafeBytes { stream.receive($0) }
            body += stream.body
        }
        return (stream, String(decoding: body, as: UTF8.self), isSound)
    }

    @Test func theRequestFollowsPrefaceAndSettings() throws {
        let stream = try HTTP2Stream()
        stream.get("/path?x", fields: [("Accept", "text/event-stream"), ("B", "")])
        let sent = stream.outgoing()
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        #expect(sent.starts(with: preface))
        // No pushes, a window of 1 MiB.
        #expect(
            sent.dropFirst(preface.count).starts(
                with: Self.frame(4, stream: 0, [0, 2, 0, 0, 0, 0, 0, 4, 0, 0x10, 0, 0])))
        #expect(stream.outgoing().isEmpty && stream.status == 0 && stream.endCode == nil)
    }

    @Test func theBodyIsReadWhereverItIsCut() throws {
        let bytes =
            Self.start + Self.data("data: ")
            + Self.frame(
                0, flags: 0x8,
                [4] + Array("one\n".utf8)
                    + [0, 0, 0, 0]) + Self.frame(0xFA, stream: 9, [9, 9]) + Self.data("\n")
        for cut in 0...bytes.count {
            let read = try Self.read([Array(bytes[..<cut]), Array(bytes[cut...])])
            #expect(read.body == "data: one\n\n" && read.isSound, "cut at \(cut)")
            #expect(read.stream.status == 200 && read.stream.endCode == nil)
        }
        #expect(try Self.read(bytes.map { [$0] }).body == "data: one\n\n", "byte by byte")
    }

    @Test func settingsAndPingsAreAnswered() throws {
        let read = try Self.read([
            Self.settings + Self.frame(6, stream: 0, [1, 2, 3, 4, 5, 6, 7, 8])
        ])
        let sent = read.stream.outgoing()
        let expected = [
            Self.frame(4, flags: 0x1, stream: 0, []),
            Self.frame(6, flags: 0x1, stream: 0, [1, 2, 3, 4, 5, 6, 7, 8]),
        ]
        #expect(sent == expected[0] + expected[1] || sent == expected[1] + expected[0])
    }

    @Test func aServerThatIsReadMaySendMore() throws {
        let chunk = Self.data(String(repeating: "x", count: 16_384))
        let read = try Self.read([Self.start] + Array(repeating: chunk, count: 40))
        // Both windows are opened again once half of them is used.
        let sent = read.stream.outgoing()
        let updates = sent.indices.dropLast(8).count {
            sent[$0..<$0 + 5].elementsEqual([0, 0, 4, 8, 0])
        }
        #expect(read.body.utf8.count == 40 * 16_384 && updates == 2)
    }

    private static let ends: [(frame: [UInt8], code: UInt32)] = [
        // The end of the body, trailers, a reset, and the end of the connection.
        (data("", flags: 0x1), 0), (frame(1, flags: 0x5, [0x00, 0x01, 0x61, 0x01, 0x62]), 0),
        (frame(3, [0, 0, 0, 8]), 8), (frame(7, stream: 0, [0, 0, 0, 1, 0, 0, 0, 11]), 11),
    ]

    @Test(arguments: ends)
    func theEndOfTheStreamIsSeen(frame: [UInt8], code: UInt32) throws {
        #expect(try Self.read([Self.start, frame]).stream.endCode == code)
        #expect(try Self.read((Self.start + frame).map { [$0] }).stream.endCode == code)
    }

    @Test func anotherStatusIsSeen() throws {
        let refused = Self.frame(1, flags: 0x4, [0x08, 0x03, 0x34, 0x30, 0x31])
        #expect(try Self.read([Self.settings, refused]).stream.status == 401)
    }

    private static let broken: [[UInt8]] = [
        // A frame that is too long, and bytes that are not frames.
        [0x7F, 0, 0, 0, 0, 0, 0, 0, 1], Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8),
    ]

    @Test(arguments: broken)
    func brokenFramesEndTheConnection(bytes: [UInt8]) throws {
        let read = try Self.read([bytes])
        // nghttp2 answers invalid bytes with GOAWAY, type 7.
        #expect(!read.isSound || read.stream.outgoing().contains(7))
    }
}
