/// Ranks from 1 on, of which the first is drawn most: rank `r` with a weight of `1/r` (Zipf).
struct Popularity: Sendable {
    /// Most ranks: what a fleet of 10,000 devices can tell apart many times over.
    static let ranksMax = 1_000_000

    /// The sum of the weights up to each rank.
    private let sums: [Double]

    /// - Parameter ranks: 1 to ``ranksMax``; what is out of bounds counts as the nearest in them.
    init(ranks: Int) {
        var sums: [Double] = []
        var sum = 0.0
        for rank in 1...min(max(ranks, 1), Self.ranksMax) {
            sum += 1 / Double(rank)
            sums.append(sum)
        }
        self.sums = sums
    }

    /// A rank.
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
