import Foundation
import Testing
import WidgetModel

@Suite struct Base64Tests {
    @Test func everyLengthAgreesWithFoundation() throws {
        var generator = SplitMix64(seed: 7)
        for count in 0...260 {
            let sample = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let padded = Data(sample).base64EncodedString()
            let unpadded = padded.replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_")
                .replacingOccurrences(of: "=", with: "")
            for (base64, expected) in [(Base64.standard, padded), (.url, unpadded)] {
                #expect(base64.string(sample) == expected)
                #expect(base64.encodedCount(count) == expected.utf8.count)
                #expect(base64.decode(expected) == sample)
            }
        }
    }

    @Test(arguments: [
        "QQ==", "QQ=", "A", "AAAAA", "AB CD", "AA\n", " AAA", "A+AA", "A/AA", "QUJ", "QR", "Zh",
        "A.AA", "ÄAAA", "AA\0A",
    ])
    func whatIsNotTheOneSpellingIsRefused(_ spelling: String) {
        #expect(Base64.url.decode(spelling) == nil)
    }

    @Test(arguments: [
        "QQ", "QQ=", "QR==", "QUI", "QUJ=", "=", "==", "====", "A===", "QQ==QQ==", "AAAA====",
        "A-AA",
        "A_AA", "QQ =", "Q=Q=", "ÄAA", "AA\0A",
    ])
    func whatIsNotTheOnePaddedSpellingIsRefused(_ spelling: String) {
        #expect(Base64.standard.decode(spelling) == nil)
    }

    /// Two or four bits of the last letter are unused: of all spellings exactly one is accepted.
    @Test func everyByteStringOfOneOrTwoBytesHasOneSpelling() {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
        var seen: [[UInt8]: Int] = [:]
        for first in letters {
            for second in letters {
                if let decoded = Base64.url.decode([first, second]) {
                    seen[decoded, default: 0] += 1
                }
            }
        }
        #expect(seen.count == 256)
        #expect(seen.values.allSatisfy { $0 == 1 })
    }
}
