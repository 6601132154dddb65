import Synchronization

/// The thin shell around ``SpanBatcher``: hands in time, sends what it says, and waits.
///
/// Whoever ends a span waits for nothing here but a lock that nobody holds for long.
package final class SpanExporter: Sendable {
    private let batcher: Mutex<SpanBatcher>
    private let now: @Sendable () -> Int64
    private let send: @Sendable ([SpanRecord]) async -> ExportAnswer
    private let wakes: AsyncStream<Void>
    private let waker: AsyncStream<Void>.Continuation
    private let work = Mutex<Task<Void, Never>?>(nil)

    /// Sends nothing before ``start()``.
    ///
    /// - Parameters:
    ///   - now: Monotonic milliseconds.
    ///   - send: Hands spans to the collector; called for one batch after another. A task that is
    ///     cancelled has to end it.
    package init(
        _ terms: SpanBatcher.Terms = .init(), now: @escaping @Sendable () -> Int64,
        send: @escaping @Sendable ([SpanRecord]) async -> ExportAnswer
    ) {
        batcher = Mutex(SpanBatcher(terms))
        self.now = now
        self.send = send
        (wakes, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Takes a span that has ended.
    package func take(_ span: SpanRecord) {
        let now = now()
        if batcher.withLock({ $0.add(span, now: now) }) { waker.yield() }
    }

    /// What became of spans so far.
    package var counts: SpanBatcher.Counts { batcher.withLock { $0.counts } }

    /// Begins to send. Called once.
    package func start() {
        work.withLock { $0 = Task { await self.run() } }
    }

    /// Sends what is left, for so long at most, and stops.
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
                batcher.withLock { $0.answered(answer, now: time, random: .random(in: 0...1)) }
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
