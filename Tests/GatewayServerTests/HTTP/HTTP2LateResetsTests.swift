import GatewayTestSupport
import NIOCore
import NIOEmbedded
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayHTTP

/// The part of a client's bytes that reaches NIO's HTTP/2 handler.
@Suite struct HTTP2LateResetsTests {
    private static let preface = [UInt8]("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private static func frame(_ type: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, 0]
            + (0..<4).map { UInt8(stream >> (24 - 8 * $0) & 0xFF) } + payload
    }

    private static func reset(_ stream: UInt32) -> [UInt8] { frame(3, stream, [0, 0, 0, 8]) }

    /// Returns the bytes of these pieces that are passed on when streams up to 100 have ended.
    private func passed(_ pieces: [[UInt8]]) throws -> [UInt8] {
        let channel = EmbeddedChannel(handler: HTTP2LateResets(isOver: { $0 <= 100 }))
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

    /// However the bytes are cut, all are passed on in order, except whole late resets.
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
                let frame = Self.frame(1, stream, [1, 2, 3, 4])
                let cut = Int.random(in: 0...frame.count, using: &random)
                add(Array(frame[..<cut]), isKept: true)
                pieces.append([])
                add(Array(frame[cut...]), isKept: true)
            }
        }
        #expect(try passed(pieces) == expected)
        // A reset that is cut is passed on.
        let cut = Self.reset(5)
        let whole = pieces + [Array(cut[..<7]), Array(cut[7...])]
        #expect(try passed(whole) == expected + cut)
    }
}
