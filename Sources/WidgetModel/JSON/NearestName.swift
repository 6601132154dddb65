/// Finds the name that was probably meant, within a budget of work that all searches of one document
/// share: a sender chooses how many names are unknown and how many there are to choose from.
struct NearestName {
    /// Steps that the searches for one document may take, about one comparison of two bytes each.
    static let stepsMax = 1_000_000

    /// Steps that are left.
    private(set) var stepsLeft: Int

    /// A search with so many steps.
    init(steps: Int = stepsMax) {
        stepsLeft = steps
    }

    /// The candidate nearest to `text` when one is near enough to be a slip of the finger; of
    /// several the first in the order of names. `nil` too where the budget ends before all candidates
    /// were compared.
    mutating func search(_ text: String, among candidates: some Sequence<String>) -> String? {
        guard stepsLeft > 0, text.utf8.count <= 64 else { return nil }
        let word = Self.folded(text)
        var best: (name: String, distance: Int)?
        for candidate in candidates {
            let limit = best?.distance ?? max(1, word.count / 3)
            stepsLeft -= 1
            guard stepsLeft > 0 else { return nil }
            guard abs(candidate.utf8.count - word.count) <= limit,
                let distance = distance(word, Self.folded(candidate), limit: limit)
            else { continue }
            if let best, (best.distance, best.name) <= (distance, candidate) { continue }
            best = (candidate, distance)
        }
        return stepsLeft > 0 ? best?.name : nil
    }

    /// The bytes of a text, with ASCII letters in lower case.
    private static func folded(_ text: String) -> [UInt8] {
        text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }

    /// Levenshtein's edit distance, or `nil` where it is beyond `limit`: only the part of the table is
    /// computed that lies within `limit` of its diagonal.
    private mutating func distance(_ left: [UInt8], _ right: [UInt8], limit: Int) -> Int? {
        let far = limit + 1
        var row = (0...right.count).map { min($0, far) }
        for (i, a) in left.enumerated() {
            let first = max(0, i - limit)
            let end = min(right.count, i + limit + 1)
            stepsLeft -= max(0, end - first) + 1
            guard stepsLeft > 0, first <= end else { return nil }
            var diagonal = row[first]
            row[first] = first == 0 ? min(i + 1, far) : far
            var least = row[first]
            for j in first..<end {
                let above = j + 1 <= i + limit ? row[j + 1] : far
                let cost = min(above + 1, row[j] + 1, diagonal + (a == right[j] ? 0 : 1), far)
                diagonal = row[j + 1]
                row[j + 1] = cost
                least = min(least, cost)
            }
            guard least <= limit else { return nil }
        }
        return row[right.count] <= limit ? row[right.count] : nil
    }
}

extension String {
    /// The candidate nearest to this text, when one is near enough to be a slip of the finger.
    public func nearest(of candidates: some Sequence<String>) -> String? {
        var search = NearestName()
        return search.search(self, among: candidates)
    }
}
