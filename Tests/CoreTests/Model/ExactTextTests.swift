import Testing

@testable import WidgetModel

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
