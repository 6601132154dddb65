/// A text that is compared by its UTF-8 bytes, where `==` on `String` also equates
/// Unicode-equivalent texts: `K` and U+212A, or both forms of `é`.
///
/// Every name or value of a peer that grants something, or identifies somebody, is compared by its
/// bytes: by this type in sets and dictionaries, elsewhere by `hasSameBytes(as:)`.
package struct ExactText: Sendable, Hashable {
    package let text: String

    /// A text to be compared by its bytes.
    package init(_ text: String) {
        self.text = text
    }

    /// Compares the bytes.
    package static func == (left: Self, right: Self) -> Bool {
        left.text.hasSameBytes(as: right.text)
    }

    package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

extension [String] {
    /// Returns whether two lists contain the same texts, by their bytes, in any order.
    package func hasSameTexts(as other: [String]) -> Bool {
        // Most lists have one element.
        if let text = first, count == 1, other.count == 1 { return text.hasSameBytes(as: other[0]) }
        return Set(map(ExactText.init)) == Set(other.map(ExactText.init))
    }
}

extension Set<String> {
    /// Returns whether a text with the same bytes is in the set.
    package func containsBytes(of text: String) -> Bool {
        firstIndex(of: text).map { self[$0].hasSameBytes(as: text) } ?? false
    }
}

extension [String: [String]] {
    /// Returns whether names and values are the same, by their bytes, values in the same order.
    package func hasSameBytes(as other: [String: [String]]) -> Bool {
        count == other.count
            && allSatisfy { name, values in
                guard let index = other.index(forKey: name) else { return false }
                let (otherName, otherValues) = other[index]
                return name.hasSameBytes(as: otherName)
                    && values.elementsEqual(otherValues) { $0.hasSameBytes(as: $1) }
            }
    }
}
