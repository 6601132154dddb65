import Testing

@testable import GatewayCore

@Suite struct SipHashTests {
    /// The vectors that the authors of SipHash-2-4 publish for a 64-bit result, with the key 00 01
    /// … 0f, of the first n bytes of 00 01 02 …, as little-endian bytes.
    static let vectors: [(Int, UInt64)] = [
        (0, 0x726F_DB47_DD0E_0E31), (1, 0x74F8_39C5_93DC_67FD), (2, 0x0D6C_8009_D9A9_4F5A),
        (3, 0x8567_6696_D7FB_7E2D), (4, 0xCF27_94E0_2771_87B7), (5, 0x1876_5564_CD99_A68D),
        (6, 0xCBC9_466E_58FE_E3CE), (7, 0xAB02_00F5_8B01_D137), (8, 0x93F5_F579_9A93_2462),
        (15, 0xA129_CA61_49BE_45E5),
    ]

    @Test(arguments: vectors)
    func `the published vectors come out`(length: Int, expected: UInt64) {
        #expect(testHash((0..<length).map { UInt8($0) }) == expected)
    }

    @Test func `a secret is the key in little-endian order and short ones are filled up`() {
        let bytes: [UInt8] = [1, 2, 3]
        #expect(SipHash(secret: (0..<16).map { UInt8($0) })(bytes) == testHash(bytes))
        #expect(SipHash(secret: [9])(bytes) == SipHash(9, 0)(bytes))
        #expect(SipHash(secret: [])(bytes) == SipHash(0, 0)(bytes))
    }

    @Test func `words and texts hash as their bytes`() {
        #expect(testHash(0x0706_0504_0302_0100) == testHash((0..<8).map { UInt8($0) }))
        #expect(testHash("abc") == testHash(Array("abc".utf8)))
        #expect(testHash("abc") != SipHash(1, 1)("abc"))
    }
}
