import DequeModule

/// Decides when which spans are sent, and when again. Owns no thread, timer or connection; spans
/// beyond its bounds are counted and forgotten.
package struct SpanBatcher: Sendable {
    /// How it decides.
    package struct Terms: Sendable {
        /// Most spans that wait.
        package var waitingMax = 8_192
        /// Most bytes that those may be, written down.
        package var waitingBytesMax = 16 << 20
        /// Most spans that are sent at once.
        package var batchMax = 512
        /// Most bytes that those may be, unless one alone is more.
        package var batchBytesMax = 512 << 10
        /// Longest wait of a span for others, in milliseconds.
        package var interval: Int64 = 2_000
        /// How often the same spans are sent at most.
        package var attemptsMax = 5
        /// The wait before the second attempt, in milliseconds; it doubles from one to the next.
        package var backoff: Int64 = 1_000
        /// The longest wait, whatever the collector asks for, in milliseconds.
        package var backoffMax: Int64 = 30_000

        /// The usual ones.
        package init() {}
    }

    /// What is to be done now.
    package enum Step: Sendable, Equatable {
        /// Send these, and say what came of it.
        case send([SpanRecord])
        /// Nothing before this time, unless a span says otherwise.
        case wait(until: Int64)
        /// Nothing.
        case idle
        /// Nothing, ever again.
        case done
    }

    /// What became of spans.
    package struct Counts: Sendable, Equatable {
        /// Taken by the collector.
        package var exported: UInt64
        /// Forgotten because too many waited.
        package var dropped: UInt64
        /// Refused by the collector.
        package var refused: UInt64
        /// Given up: the collector was not there, or did not take them in time.
        package var undelivered: UInt64

        /// So many.
        package init(
            exported: UInt64 = 0, dropped: UInt64 = 0, refused: UInt64 = 0,
            undelivered: UInt64 = 0
        ) {
            self.exported = exported
            self.dropped = dropped
            self.refused = refused
            self.undelivered = undelivered
        }
    }

    private enum State {
        /// Nothing is under way.
        ///
        /// Can transition to: `sending` when a batch is full or old enough.
        case gathering
        /// The collector has `batch`.
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
    /// When the oldest of `spans` came.
    private var since: Int64 = 0
    private var batch: [SpanRecord] = []
    private var attempts = 0
    private var isEnding = false
    /// What became of spans so far.
    package private(set) var counts = Counts()

    /// Nothing waits.
    package init(_ terms: Terms = Terms()) {
        self.terms = terms
    }

    /// How many spans are kept, those under way included.
    package var count: Int { spans.count + batch.count }

    /// Takes a span.
    ///
    /// - Parameter now: Monotonic milliseconds.
    /// - Returns: Whether ``next(now:)`` may say something else than before.
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

    /// What is to be done now.
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

    /// The collector answered what was sent last, or did not.
    ///
    /// - Parameter random: From 0 to 1; spreads the attempts of many gateways.
    package mutating func answered(_ answer: ExportAnswer, now: Int64, random: Double) {
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
            // Half of it and a random part of the rest.
            let doubled = min(terms.backoffMax, terms.backoff << Int64(min(attempts - 1, 16)))
            let spread = doubled / 2 + Int64(Double(doubled / 2) * min(1, max(0, random)))
            let asked = max(0, min(after ?? 0, terms.backoffMax / 1_000)) * 1_000
            state = .waiting(until: now + max(spread, asked))
            return
        }
        batch.removeAll()
        state = .gathering
    }

    /// Takes no more spans; those that wait are sent without delay, and none twice.
    package mutating func end(now: Int64) {
        isEnding = true
        if case .waiting = state { state = .waiting(until: now) }
    }

    /// Gives up all that is left.
    package mutating func abandon() {
        counts.undelivered += UInt64(count)
        spans.removeAll()
        batch.removeAll()
        bytes = 0
        isEnding = true
        state = .gathering
    }
}
