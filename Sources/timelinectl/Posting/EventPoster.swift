import TimelineRuntime

/// Posts events in batches, and drops those that the gateway refuses for good.
struct EventPoster {
    let service: GatewayService
    let interruption: Interruption
    private(set) var figures = PostingFigures()
    private var batch = EventBatch()

    init(service: GatewayService, until interruption: Interruption) {
        (self.service, self.interruption) = (service, interruption)
    }

    /// Posts the first events, and removes those that are done.
    ///
    /// - Returns: `nil`, or why and how long the next post has to wait.
    mutating func post(
        _ events: inout [DatabaseEvent]
    ) async -> (failure: GatewayFailure, wait: Duration)? {
        let posted = Array(events.prefix(batch.size))
        var failure: GatewayFailure?
        do throws(GatewayFailure) {
            let interruption = interruption
            figures.count(try await service.post(posted) { interruption.hasCome })
        } catch {
            failure = error
        }
        switch batch.decide(count: posted.count, failure: failure, random: .random(in: 0...1)) {
        case .remove: events.removeFirst(posted.count)
        case .setAside(let reasons):
            for (index, reason) in reasons.sorted(by: { $0.key > $1.key }) {
                let change = String(decoding: posted[index].change, as: UTF8.self)
                Terminal.complain("timelinectl: refused for good, dropped: \(change): \(reason)")
                events.remove(at: index)
            }
            figures.setAside += reasons.count
        case .split: break
        case .retry(let wait): return failure.map { ($0, wait) }
        }
        return nil
    }

    /// Returns the numbers since the last call.
    mutating func takeFigures() -> PostingFigures {
        defer { figures = PostingFigures() }
        return figures
    }
}
