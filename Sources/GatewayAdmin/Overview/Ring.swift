import GatewayEngine

/// The latest of something: keeps so many, and forgets the oldest for each further one.
struct Ring<Element: Sendable>: Sendable {
    private let countMax: Int
    private var stored: [Element] = []
    private var oldest = 0

    /// An empty ring.
    ///
    /// - Precondition: `countMax` is at least 1.
    init(countMax: Int) {
        precondition(countMax > 0, "a ring of nothing")
        self.countMax = countMax
    }

    var count: Int { stored.count }

    var last: Element? {
        stored.isEmpty ? nil : stored[(oldest + stored.count - 1) % stored.count]
    }

    /// All of them, the oldest first.
    var elements: [Element] { Array(stored[oldest...] + stored[..<oldest]) }

    mutating func append(_ element: Element) {
        guard stored.count == countMax else {
            stored.append(element)
            return
        }
        stored[oldest] = element
        oldest = (oldest + 1) % countMax
    }

    /// The one that came `count` before the last; the oldest where there are not so many.
    func before(_ count: Int) -> Element? {
        guard !stored.isEmpty else { return nil }
        let place = max(0, stored.count - 1 - max(0, count))
        return stored[(oldest + place) % stored.count]
    }
}
