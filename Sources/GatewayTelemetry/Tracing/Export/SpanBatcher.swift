import DequeModule
import WidgetModel

/// Decides when spans are sent and retried. Owns no thread, timer or connection. Spans beyond its
/// limits are counted and dropped.
package struct SpanBatcher: Sendable {
    /// The limits and intervals.
    package struct Terms: Sendable {
        package var waitingMax = 8_192
        /// The maximum encoded size of the waiting spans, bytes.
        package var waitingBytesMax = 16 << 20
        package var batchMax = 512
        /// The maximum encoded size of a batch, bytes, unless a single span is larger.
        package var batchBytesMax = 512 << 10
        /// The longest time that a span waits for others, ms.
        package var interval: Int64 = 2_000
        package var attemptsMax = 5
        /// The wait before the second attempt, ms; it doubles with each further one.
        package var backoff: Int64 = 1_000
        /// The longest wait, whatever the collector requests, ms.
        package var backoffMax: Int64 = 30_000

        package init() {}
    }

    /// An order to the caller.
    package enum Step: Sendable, Equatable {
        /// Send these spans, and report the result.
        case send([SpanRecord])
        /// Do nothing before this time, unless a span is added.
        case wait(until: Int64)
        /// Do nothing.
        case idle
        /// Do nothing any more: the work is complete.
        case done
    }

    package struct Counts: Sendable, Equatable {
        /// The spans that the collector accepted.
        package var exported: UInt64 = 0
        /// The spans dropped because too many were waiting.
        package var dropped: UInt64 = 0
        /// The spans that the collector rejected.
        package var refused: UInt64 = 0
        /// The spans given up because the collector was unreachable, or did not accept them in
        /// time.
        package var undelivered: UInt64 = 0
    }

    private enum State {
        /// No batch is in flight.
        ///
        /// Can transition to: `sending` when a batch is full or old enough.
        case gathering
        /// The collector is processing `batch`.
        ///
        /// Can transition to: `gathering` when its answer is final, `waiting` when it is not.
        case sending
        /// `batch` is sent again at this time.
        ///
        /// Can transition to: `sending` when it comes.
        case waiting(until: Int64)
    }

    private let terms: Terms
    private var state = State.gathering
    private var spans = Deque<SpanRecord>()
    private var bytes = 0
    /// The time of arrival of the oldest of `spans`.
    private var since: Int64 = 0
    private var batch: [SpanRecord] = []
    private var attempts = 0
    private var isEnding = false
    /// The number of spans by result so far.
    package private(set) var counts = Counts()

    package init(_ terms: Terms = Terms()) {
        self.terms = terms
    }

    /// The number of stored spans, including those in flight.
    package var count: Int { spans.count + batch.count }

    /// Adds a span at `now`, in monotonic milliseconds. Returns whether ``next(now:)`` may return a
    /// different order than before.
    package mutating func add(_ span: SpanRecord, now: Int64) -> Bool {
        let size = span.bytesMax
        guard !isEnding, spans.count < terms.waitingMax,
            size <= terms.waitingBytesMax - bytes
        else {
            counts.dropped += 1
            return false
        }
        if spans.isEmpty { since = now }
        spans.append(span)
        bytes += size
        return spans.count == 1 || spans.count == terms.batchMax
    }

    package mutating func next(now: Int64) -> Step {
        switch state {
        case .sending: return .idle
        case .waiting(let until) where now < until: return .wait(until: until)
        case .waiting: break
        case .gathering:
            guard !spans.isEmpty else { return isEnding ? .done : .idle }
            let due = since + terms.interval
            guard isEnding || spans.count >= terms.batchMax || now >= due else {
                return .wait(until: due)
            }
            fill(now)
        }
        attempts += 1
        state = .sending
        return .send(batch)
    }

    private mutating func fill(_ now: Int64) {
        var size = 0
        while let span = spans.first, batch.count < terms.batchMax {
            let more = span.bytesMax
            guard batch.isEmpty || size + more <= terms.batchBytesMax else { break }
            size += more
            batch.append(span)
            spans.removeFirst()
        }
        bytes -= size
        attempts = 0
        since = now
    }

    /// Records the collector's response to the last batch, or its absence. `random` is 64 random
    /// bits, which spread the attempts of many gateways.
    package mutating func answered(_ answer: ExportAnswer, now: Int64, random: UInt64) {
        guard case .sending = state else { return }
        let count = UInt64(batch.count)
        switch answer {
        case .accepted(let rejected):
            let rejected = min(count, UInt64(max(0, rejected)))
            counts.exported += count - rejected
            counts.refused += rejected
        case .refused: counts.refused += count
        case .retry(let after):
            guard !isEnding, attempts < terms.attemptsMax else {
                counts.undelivered += count
                break
            }
            let backoff = Backoff(first: terms.backoff, longest: terms.backoffMax, jitter: .half)
            let spread = backoff.wait(failures: attempts - 1, random: random)
            let asked = max(0, min(after ?? 0, terms.backoffMax / 1_000)) * 1_000
            state = .waiting(until: now + max(spread, asked))
            return
        }
        batch.removeAll()
        state = .gathering
    }

    /// Accepts no more spans; those waiting are sent without delay, and none is retried.
    package mutating func end(now: Int64) {
        isEnding = true
        if case .waiting = state { state = .waiting(until: now) }
    }

    /// Gives up all remaining spans.
    package mutating func abandon() {
        counts.undelivered += UInt64(count)
        spans.removeAll()
        batch.removeAll()
        bytes = 0
        isEnding = true
        state = .gathering
    }
}
