import Foundation
import GatewaySigning
import Testing

@Suite struct Base64URLTests {
    @Test func everyLengthAgreesWithFoundation() throws {
        var generator = SplitMix(state: 7)
        for count in 0...260 {
            let sample = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let expected = Data(sample).base64EncodedString()
                .replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_")
                .replacingOccurrences(of: "=", with: "")
            #expect(Base64URL.string(sample) == expected)
            #expect(Base64URL.encodedCount(count) == expected.utf8.count)
            #expect(Base64URL.decode(expected) == sample)
        }
    }

    @Test(arguments: [
        "QQ==", "QQ=", "A", "AAAAA", "AB CD", "AA\n", " AAA", "A+AA", "A/AA", "QUJ", "QR", "Zh",
        "A.AA", "ÄAAA", "AA\0A",
    ])
    func whatIsNotTheOneSpellingIsRefused(_ spelling: String) {
        #expect(Base64URL.decode(spelling) == nil)
    }

    /// Two bits of a last letter, or four, carry nothing: of all spellings exactly one is accepted.
    @Test func everyByteStringOfOneOrTwoBytesHasOneSpelling() {
        let letters = bytes("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        var seen: [[UInt8]: Int] = [:]
        for first in letters {
            for second in letters {
                if let decoded = Base64URL.decode([first, second]) {
                    seen[decoded, default: 0] += 1
                }
            }
        }
        #expect(seen.count == 256)
        #expect(seen.values.allSatisfy { $0 == 1 })
    }
}
