import GatewayCore

extension ShardLoop {
    /// Adds to the traces of changes the number of their notifications written to streams since
    /// `began`, in nanoseconds since 1970: once per notification and turn, not per stream.
    func observeTraces(_ tracing: GatewayTracing, since began: UInt64) {
        var counts: [Int]?
        let now = GatewayTracing.now
        for (place, frame) in shard.output.frames.enumerated() where frame.acceptedAt > 0 {
            guard let change = tracing.change(at: frame.content.sequence) else { continue }
            let counted = counts ?? deliveriesByFrame()
            counts = counted
            change.told(counted[place], from: began, to: now)
        }
    }

    private func deliveriesByFrame() -> [Int] {
        var counts = Array(repeating: 0, count: shard.output.frames.count)
        for delivery in shard.output.deliveries { counts[Int(delivery.frame)] += 1 }
        return counts
    }
}
