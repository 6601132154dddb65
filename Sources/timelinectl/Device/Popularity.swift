/// Ranks from 1 on, drawn with a weight of `1/r` for rank `r` (Zipf): the first is drawn most
/// often.
struct Popularity: Sendable {
    /// The maximum number of ranks: many times what a fleet of 10,000 devices can tell apart.
    static let ranksMax = 1_000_000

    /// The cumulative weights, rank by rank.
    private let sums: [Double]

    /// - Parameter ranks: 1 to ``ranksMax``; a value outside is clamped.
    init(ranks: Int) {
        var sums: [Double] = []
        var sum = 0.0
        for rank in 1...min(max(ranks, 1), Self.ranksMax) {
            sum += 1 / Double(rank)
            sums.append(sum)
        }
        self.sums = sums
    }

    func draw(using generator: inout some RandomNumberGenerator) -> Int {
        let wanted = Double.random(in: 0..<(sums.last ?? 1), using: &generator)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] <= wanted { low = middle + 1 } else { high = middle }
        }
        return low + 1
    }
}
