import WidgetModel

/// Hands the messages of the log to every event loop, to the push loop and to the sealer of
/// versions. They must come in the order of the log, from one thread at a time.
package struct LogPublisher: Sendable {
    private let loops: [ShardLoop]
    /// Receives the same messages as the loops; `nil` where nothing is pushed.
    private let push: PushLoop?
    let sealer: VersionSealer
    /// `nil` where nothing is traced.
    private let tracing: GatewayTracing?

    init(
        loops: ShardLoops, push: PushLoop?, sealer: VersionSealer, tracing: GatewayTracing?
    ) {
        self.loops = loops.all
        self.push = push
        self.sealer = sealer
        self.tracing = tracing
    }

    /// The number of event loops that receive each message.
    package var loopCount: Int { loops.count }

    /// Returns the number of entries that the slowest receiver has not applied yet.
    ///
    /// - Parameter head: The last entry that was published.
    package func backlog(behind head: UInt64) -> UInt64 {
        head - loops.reduce(min(head, sealer.position)) { min($0, $1.position) }
    }

    /// Hands over messages.
    ///
    /// - Parameter traced: The traces of their changes.
    func publish(_ messages: [LogMessage], _ traced: [PostTrace.Decided]) {
        if let tracing { for one in traced { one.committed(tracing) } }
        let all = traced.isEmpty ? messages : messages + traced.flatMap(\.messages)
        for loop in loops { loop.submit(all) }
        push?.submit(messages.map { .log($0) })
        sealer.submit(messages)
    }

    /// Hands a new epoch to the push loop and then to every event loop: pushes switch to it before
    /// any client can hold one of its cursors.
    func publish(_ epoch: EpochID) {
        push?.submit([.log(.epoch(epoch))])
        for loop in loops { loop.submit([.epoch(epoch)]) }
    }
}
