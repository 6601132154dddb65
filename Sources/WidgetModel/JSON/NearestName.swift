/// Finds the known name most similar to a misspelled one, within a budget that all searches of one
/// document share, because a sender chooses both the number of unknown names and the number of
/// known ones.
struct NearestName {
    /// The budget of one document in steps; a step compares about two bytes.
    static let stepsMax = 1_000_000

    /// The remaining steps.
    private(set) var stepsLeft: Int

    init(steps: Int = stepsMax) {
        stepsLeft = steps
    }

    /// Returns the candidate nearest to `text` if it is near enough to be a typing error; of
    /// several, the first in the candidates' order. Also returns `nil` if the budget ends before
    /// all candidates are compared.
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

    /// Returns the bytes of a text with ASCII letters in lower case.
    private static func folded(_ text: String) -> [UInt8] {
        text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }

    /// Returns the Levenshtein distance, or `nil` if it exceeds `limit`. Computes only the part of
    /// the table that lies within `limit` of its diagonal.
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
    /// Returns the candidate nearest to this text if it is near enough to be a typing error.
    public func nearest(of candidates: some Sequence<String>) -> String? {
        var search = NearestName()
        return search.search(self, among: candidates)
    }
}
