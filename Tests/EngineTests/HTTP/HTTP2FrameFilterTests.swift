import GatewayTLS
import GatewayTestSupport
import NIOCore
import NIOEmbedded
import NIOHTTP2
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// The frames that reach NIO's HTTP/2 handler, and those of it that reach the client.
@Suite struct HTTP2FrameFilterTests {
    private static let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private static func frame(_ type: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, 0]
            + (0..<4).map { UInt8(stream >> (24 - 8 * $0) & 0xFF) } + payload
    }

    private static let acknowledgement: [UInt8] = [0, 0, 0, 4, 1, 0, 0, 0, 0]

    private static func reset(_ stream: UInt32) -> [UInt8] { frame(3, stream, [0, 0, 0, 8]) }

    /// Returns the bytes of these pieces that are passed on when streams up to 100 have ended.
    private func passed(_ pieces: [[UInt8]]) throws -> [UInt8] {
        let channel = EmbeddedChannel(handler: HTTP2ClientFrames(isOver: { $0 <= 100 }))
        var passed: [UInt8] = []
        for piece in pieces {
            // Like a slice, it does not start at the beginning of its memory.
            var buffer = ByteBuffer(bytes: [9, 9] + piece)
            buffer.moveReaderIndex(forwardBy: 2)
            try channel.writeInbound(buffer)
            while let out = try channel.readInbound(as: ByteBuffer.self) {
                #expect(out.readableBytes > 0)
                passed += Array(out.readableBytesView)
            }
        }
        _ = try channel.finish()
        return passed
    }

    @Test func resetsOfStreamsThatAreOverAreDroppedAndNothingElse() throws {
        let data = Self.frame(0, 1, Self.reset(1) + [7])
        let begun = Self.preface + Self.frame(4, 0, []) + data
        #expect(try passed([begun + Self.reset(1) + data]) == begun + data)
        #expect(try passed([begun, Self.reset(1), Self.reset(3)]) == begun)
        #expect(try passed([begun + Self.reset(101)]) == begun + Self.reset(101))
        // The highest bit of a stream id is ignored.
        #expect(try passed([begun + Self.reset(0x8000_0001)]) == begun)
        // A reset of another length is an error, which is left to NIO.
        let wrong = Self.frame(3, 1, [0, 0, 0, 0, 8])
        #expect(try passed([begun + wrong]) == begun + wrong)
        #expect(try passed([Self.reset(1)]) == Self.reset(1), "that is no preface")
    }

    /// A client that knows no limit of its requests yet exceeds it at no cost to its connection.
    @Test func settingsAreAcknowledgedBeforeTheFirstRequest() throws {
        let (acknowledgement, request) = (Self.acknowledgement, Self.frame(1, 1, [130]))
        let begun = Self.preface + Self.frame(4, 0, [0, 4, 0, 0, 0, 0])
        let early = begun + acknowledgement + request
        #expect(try passed([begun + request + acknowledgement + request]) == early + request)
        for cut in 1..<acknowledgement.count {
            let (one, other) = (Array(acknowledgement[..<cut]), Array(acknowledgement[cut...]))
            #expect(try passed([begun + request + one, other + request]) == early + request)
        }
        // A second one is an error, which is left to NIO.
        #expect(
            try passed([begun + request + acknowledgement + acknowledgement])
                == early + acknowledgement)
        // A client that waits for the settings acknowledges them first.
        #expect(
            try passed([begun, acknowledgement, request + acknowledgement])
                == begun + acknowledgement + request + acknowledgement)
    }

    /// However the bytes are cut, all are passed on in order, except late resets.
    @Test(arguments: 0..<200)
    func whateverTheCutsFramesAreFoundWhereTheyBegin(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var pieces: [[UInt8]] = [Self.preface]
        var expected = Self.preface
        func add(_ bytes: [UInt8], isKept: Bool) {
            pieces[pieces.count - 1] += bytes
            if isKept { expected += bytes }
        }
        for _ in 0..<60 {
            if Int.random(in: 0..<3, using: &random) == 0 { pieces.append([]) }
            let stream = UInt32.random(in: 1...200, using: &random)
            switch Int.random(in: 0..<3, using: &random) {
            case 0: add(Self.reset(stream), isKept: stream > 100)
            case 1:
                // A frame inside a payload is not a frame.
                let bytes =
                    Self.reset(1) + (0..<Int.random(in: 0..<40, using: &random)).map { _ in 3 }
                add(Self.frame(0, stream, bytes), isKept: true)
            default:
                // Cut anywhere.
                let frame = Self.frame(2, stream, [1, 2, 3, 4])
                let cut = Int.random(in: 0...frame.count, using: &random)
                add(Array(frame[..<cut]), isKept: true)
                pieces.append([])
                add(Array(frame[cut...]), isKept: true)
            }
        }
        #expect(try passed(pieces) == expected)
        for (stream, kept) in [(UInt32(5), []), (105, Self.reset(105))] as [(UInt32, [UInt8])] {
            let bytes = Self.reset(stream)
            let cut = Int.random(in: 1..<bytes.count, using: &random)
            #expect(
                try passed(pieces + [Array(bytes[..<cut]), Array(bytes[cut...])])
                    == expected + kept)
        }
    }

    @Test func theClientLearnsOurLimitAndWhatWasNotProcessed() throws {
        let end = HTTP2ConnectionEnd(firstRequestTimeout: .seconds(10), ConnectionSettings())
        var reports: [PeerViolation] = []
        let frames = HTTP2ServerFrames(end) { violation, _ in reports.append(violation) }
        let channel = EmbeddedChannel(handler: frames)
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "peer")).wait()
        func sent(_ bytes: [UInt8]) throws -> [UInt8] {
            try channel.writeOutbound(IOData.byteBuffer(ByteBuffer(bytes: bytes)))
            guard case .byteBuffer(let sent)? = try channel.readOutbound(as: IOData.self) else {
                return []
            }
            return Array(sent.readableBytesView)
        }
        let settings = [0, 3, 0, 0, 3, 232, 0, 6, 0, 1, 0, 0] as [UInt8]
        let lowered = [0, 3, 0, 0, 0, 100, 0, 6, 0, 1, 0, 0] as [UInt8]
        #expect(try sent(Self.frame(4, 0, settings)) == Self.frame(4, 0, lowered))
        end.streamCreated(5, channel: channel)
        // Bodies are sent without the headers of their frames.
        let body = Self.frame(0, 5, []) + Self.frame(7, 0, [0, 0, 0, 0, 0, 0, 0, 11])
        #expect(try sent(body) == body)
        let orderly = Self.frame(7, 0, [127, 255, 255, 255, 0, 0, 0, 0])
        #expect(try sent(orderly) == orderly)
        #expect(channel.isActive && reports == [])
        #expect(
            try sent(Self.frame(7, 0, [0, 0, 0, 0, 0, 0, 0, 11]))
                == Self.frame(7, 0, [0, 0, 0, 5, 0, 0, 0, 11]))
        #expect(!channel.isActive && reports == [.http2Flood])
    }
}
