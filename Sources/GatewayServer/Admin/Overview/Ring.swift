/// The most recent elements: stores a fixed number, and drops the oldest for each further one.
struct Ring<Element: Sendable>: Sendable {
    private let countMax: Int
    private var stored: [Element] = []
    private var oldest = 0

    init(countMax: Int) {
        precondition(countMax > 0, "a ring of nothing")
        self.countMax = countMax
    }

    var count: Int { stored.count }

    var last: Element? {
        stored.isEmpty ? nil : stored[(oldest + stored.count - 1) % stored.count]
    }

    /// All elements, oldest first.
    var elements: [Element] { Array(stored[oldest...] + stored[..<oldest]) }

    mutating func append(_ element: Element) {
        guard stored.count == countMax else {
            stored.append(element)
            return
        }
        stored[oldest] = element
        oldest = (oldest + 1) % countMax
    }

    /// The element that was appended `count` before the last one; the oldest if there are too few.
    func before(_ count: Int) -> Element? {
        guard !stored.isEmpty else { return nil }
        let place = max(0, stored.count - 1 - max(0, count))
        return stored[(oldest + place) % stored.count]
    }
}
