import Synchronization

/// A thin shell around ``SpanBatcher``: passes in the time, sends batches, and waits.
///
/// Ending a span waits only for a lock that is held briefly.
package final class SpanExporter: Sendable {
    private let batcher: Mutex<SpanBatcher>
    private let now: @Sendable () -> Int64
    private let send: @Sendable ([SpanRecord]) async -> ExportAnswer
    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let work = Mutex<Task<Void, Never>?>(nil)

    /// Creates an exporter, which sends nothing before ``start()``.
    ///
    /// - Parameters:
    ///   - now: Returns the monotonic time, ms.
    ///   - send: Sends spans to the collector; called for one batch at a time. It must end when its
    ///     task is cancelled.
    package init(
        _ terms: SpanBatcher.Terms = .init(), now: @escaping @Sendable () -> Int64,
        send: @escaping @Sendable ([SpanRecord]) async -> ExportAnswer
    ) {
        batcher = Mutex(SpanBatcher(terms))
        self.now = now
        self.send = send
        (wakes, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds a span that has ended.
    package func take(_ span: SpanRecord) {
        let now = now()
        if batcher.withLock({ $0.add(span, now: now) }) { waker.yield() }
    }

    /// The number of spans by result so far.
    package var counts: SpanBatcher.Counts { batcher.withLock { $0.counts } }

    /// Starts sending. Call it once.
    package func start() {
        work.withLock { $0 = Task { await self.run() } }
    }

    /// Sends the remaining spans within a time limit, and stops.
    package func stop(within limit: Duration) async {
        let now = now()
        batcher.withLock { $0.end(now: now) }
        waker.yield()
        let task = work.withLock { $0 }
        let deadline = Task {
            try? await Task.sleep(for: limit)
            if !Task.isCancelled { task?.cancel() }
        }
        await task?.value
        deadline.cancel()
        batcher.withLock { $0.abandon() }
    }

    private func run() async {
        var iterator = wakes.makeAsyncIterator()
        while !Task.isCancelled {
            let time = now()
            switch batcher.withLock({ $0.next(now: time) }) {
            case .send(let spans):
                let answer = await send(spans)
                let time = now()
                batcher.withLock {
                    $0.answered(answer, now: time, random: .random(in: .min ... .max))
                }
            case .wait(let until):
                let timer = Task { [waker] in
                    try? await Task.sleep(for: .milliseconds(until - time))
                    if !Task.isCancelled { waker.yield() }
                }
                _ = await iterator.next()
                timer.cancel()
            case .idle: _ = await iterator.next()
            case .done: return
            }
        }
    }
}
