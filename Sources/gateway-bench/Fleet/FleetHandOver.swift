import GatewayPostgres

/// The partitions of nodes that are lost, until other nodes push to their clients.
struct FleetHandOver {
    /// The number of partitions that the lost nodes had.
    private(set) var partitions = 0
    /// The highest number of them that one node takes over.
    private(set) var partitionsOfOne = 0
    /// The times from the loss until a partition is loaded, seconds.
    private(set) var times: [Double] = []
    /// The total time of loading, seconds of one connection.
    private(set) var loading = 0.0

    /// Hands the partitions of some nodes over.
    init(
        _ settings: FleetSettings, constants: FleetConstants, losing lost: Set<Int32>,
        using chance: inout FleetChance
    ) {
        let nodes = (0..<Int32(settings.nodes)).map { $0 }
        let left = nodes.filter { !lost.contains($0) }
        let renewal = Double(PartitionKeeper.renewalInterval) / 1_000
        let takes = Double(PartitionKeeper.takeInterval) / 1_000
        let leaseEnds = nodes.map { _ in constants.lease - renewal * chance.unit() }
        let firstTakes = nodes.map { _ in takes * chance.unit() }
        let load =
            Double(settings.clients) / Double(Partition.count) * constants.loadPerClient
            + constants.roundTrip

        var taken = [[Double]](repeating: [], count: nodes.count)
        for number in 0..<Partition.count {
            guard let old = PartitionShare.owner(of: number, among: nodes), lost.contains(old),
                let new = PartitionShare.owner(of: number, among: left)
            else { continue }
            let (end, first) = (leaseEnds[Int(old)], firstTakes[Int(new)])
            let attempts = ((end - first) / takes).rounded(.up)
            taken[Int(new)].append(first + attempts * takes + constants.roundTrip)
        }
        // A node loads its partitions one after the other.
        for ofOne in taken {
            var now = 0.0
            for time in ofOne.sorted() {
                now = max(now, time) + load
                times.append(now)
            }
            partitionsOfOne = max(partitionsOfOne, ofOne.count)
        }
        partitions = times.count
        loading = load * Double(partitions)
    }
}
