/// The waits of the bystander's posts.
struct BystanderStats: Equatable {
    /// The CPU time that the gateway used while each post waited for its answer, in milliseconds,
    /// ascending. A host that is busy stretches the time, but not this.
    let milliseconds: [Double]
    /// The number of posts that were answered with anything but 202, or not at all.
    let failed: Int

    /// Makes figures of posts in any order.
    init(milliseconds: [Double], failed: Int = 0) {
        self.milliseconds = milliseconds.sorted()
        self.failed = failed
    }

    /// Joins the posts of several figures.
    init(_ parts: [BystanderStats]) {
        self.init(
            milliseconds: parts.flatMap(\.milliseconds), failed: parts.reduce(0) { $0 + $1.failed })
    }

    /// The CPU time that `fraction` (0 to 1) of the posts did not exceed; 0 where there were none.
    func percentile(_ fraction: Double) -> Double {
        guard !milliseconds.isEmpty else { return 0 }
        let rank = Int((fraction * Double(milliseconds.count)).rounded(.up))
        return milliseconds[min(max(rank, 1), milliseconds.count) - 1]
    }

    /// The CPU time of the slowest post; 0 where there were none.
    var slowest: Double { milliseconds.last ?? 0 }
}
