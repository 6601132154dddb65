import Testing

@testable import gateway_bench

/// What a client sends over HTTP/2, byte by byte.
@Suite struct HTTP2RequestTests {
    @Test func aConnectionStartsWithPrefaceSettingsWindowAndRequest() {
        let value = String(repeating: "v", count: 300)
        let block: [UInt8] =
            [0, 7] + Array(":method".utf8) + [3] + Array("GET".utf8)
            + [0, 7] + Array(":scheme".utf8) + [5] + Array("https".utf8)
            + [0, 10] + Array(":authority".utf8) + [9] + Array("localhost".utf8)
            + [0, 5] + Array(":path".utf8) + [2] + Array("/x".utf8)
            // 300 is 127 + 0x2D + 1 * 128.
            + [0, 6] + Array("accept".utf8) + [0x7F, 0xAD, 0x01] + Array(value.utf8)
        #expect(
            HTTP2Request.start("/x", fields: [("Accept", value)])
                == Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
                + [0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0, 0x10, 0, 0]
                // 2^20 - 65535.
                + [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0x0F, 0, 1]
                + [0, UInt8(block.count >> 8), UInt8(block.count & 0xFF), 1, 5, 0, 0, 0, 1] + block)
    }

    @Test(arguments: [
        (126, [126]), (127, [0x7F, 0]), (254, [0x7F, 0x7F]), (255, [0x7F, 0x80, 1]),
    ])
    func aLengthTakesTheBytesItNeeds(count: Int, encoded: [UInt8]) {
        let value = String(repeating: "v", count: count)
        let bytes = HTTP2Request.start("/", fields: [("a", value)])
        let field = [0, 1, UInt8(ascii: "a")] + encoded + Array(value.utf8)
        #expect(Array(bytes.suffix(field.count)) == field)
    }

    @Test func answersAndWindows() {
        #expect(HTTP2Request.settingsAcknowledgement == [0, 0, 0, 4, 1, 0, 0, 0, 0])
        #expect(
            HTTP2Request.pong(0x0102_0304_0506_0708)
                == [0, 0, 8, 6, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
        #expect(
            HTTP2Request.windowUpdates(0x8_0000)
                == [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 4, 8, 0, 0, 0, 0, 1, 0, 8, 0, 0])
    }
}
