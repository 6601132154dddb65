import Foundation
import Testing

@testable import WidgetModel

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

/// Texts that Swift's `==` equates, and their bytes do not.
@Suite struct ExactTextTests {
    private static let alike = [
        ("K", "\u{212A}"), ("\u{E9}", "e\u{301}"), (";", "\u{37E}"), ("\u{3A9}", "\u{2126}"),
    ]

    @Test(arguments: alike) func `look-alikes are different texts`(one: String, other: String) {
        #expect(one == other, "what this is about")
        #expect(ExactText(one) != ExactText(other) && ExactText(one) == ExactText(one))
        #expect(Set([one, other].map(ExactText.init)).count == 2)
        #expect(Set([one]).containsBytes(of: one) && !Set([one]).containsBytes(of: other))
        #expect(!Set([one]).containsBytes(of: "x"))
    }

    @Test(arguments: alike) func `lists and attributes are compared by bytes`(
        one: String, other: String
    ) {
        #expect([one].hasSameTexts(as: [one]) && ![one].hasSameTexts(as: [other]))
        #expect(["a", one, one].hasSameTexts(as: [one, "a"]))
        #expect(!["a", one].hasSameTexts(as: ["a", other]))
        #expect(![String]().hasSameTexts(as: [one]) && [String]().hasSameTexts(as: []))
        #expect(["a": [one]].hasSameBytes(as: ["a": [one]]))
        #expect(!["a": [one]].hasSameBytes(as: ["a": [other]]))
        #expect(![one: ["a"]].hasSameBytes(as: [other: ["a"]]))
        #expect(!["a": [one], "b": []].hasSameBytes(as: ["a": [one]]))
        #expect(!["a": ["1", "2"]].hasSameBytes(as: ["a": ["2", "1"]]))
    }
}

@Suite struct HTTPDateTests {
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
        ("Sat, 21 Nov 2026 06:32:54 GMT", 1_795_242_774),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Saturday, 21-Nov-26 06:32:54 GMT", 1_795_242_774),
        ("Thursday, 01-Jan-70 00:00:00 GMT", 0),
        ("Sun Nov  6 08:49:37 1994", 784_111_777),
        ("Sat Nov 21 06:32:54 2026", 1_795_242_774),
    ])
    func aDateIsRead(text: String, seconds: Int64) {
        #expect(HTTPDate.seconds(text) == seconds)
    }

    @Test(arguments: [
        "", "now", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 99999999999999999999 08:49:37 GMT", "Sun, 06 Nov 1994 :: GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 UTC", "Sun Nov 6 08:49:37 94", "Sun Nov 6 1994 08:49:37",
        "Sun Nov -6 08:49:37 1994",
    ])
    func whatIsNoDateIsIgnored(text: String) {
        #expect(HTTPDate.seconds(text) == nil)
    }
}
