import GatewayTestSupport
import Synchronization
import Testing
import Tracing
import WidgetModel

@testable import GatewayTelemetry

func span(_ name: String, at time: UInt64 = 1) -> SpanRecord {
    var random = SplitMix64(seed: time)
    let context = TraceContext(
        traceID: .random(using: &random), spanID: .random(using: &random), isSampled: true)
    return SpanRecord(
        context: context, parent: nil, name: name, kind: .internal, start: time, end: time + 1,
        attributes: [], events: [], links: [], failed: nil)
}

extension SpanBatcher.Step {
    /// The names of the spans to be sent; `nil` for anything else.
    var names: [String]? {
        if case .send(let spans) = self { spans.map(\.name) } else { nil }
    }
}

/// A batcher whose next step a test can read.
private final class Batching {
    private var batcher: SpanBatcher

    init(_ terms: SpanBatcher.Terms) { batcher = SpanBatcher(terms) }

    var counts: SpanBatcher.Counts { batcher.counts }
    var count: Int { batcher.count }
    func add(_ span: SpanRecord, now: Int64) -> Bool { batcher.add(span, now: now) }
    func next(now: Int64) -> SpanBatcher.Step { batcher.next(now: now) }
    func answered(_ answer: ExportAnswer, now: Int64, random: UInt64) {
        batcher.answered(answer, now: now, random: random)
    }
    func end(now: Int64) { batcher.end(now: now) }
    func abandon() { batcher.abandon() }
}

@Suite struct SpanBatcherTests {
    private func batcher(_ change: (inout SpanBatcher.Terms) -> Void = { _ in }) -> Batching {
        var terms = SpanBatcher.Terms()
        terms.batchMax = 3
        terms.waitingMax = 5
        terms.interval = 100
        terms.backoff = 1_000
        terms.backoffMax = 4_000
        terms.attemptsMax = 3
        change(&terms)
        return Batching(terms)
    }

    @Test func `spans wait for others, but not for long`() {
        let batcher = batcher()
        #expect(batcher.next(now: 0) == .idle)
        #expect(batcher.add(span("a"), now: 10))
        #expect(batcher.next(now: 10) == .wait(until: 110))
        #expect(!batcher.add(span("b"), now: 50))
        #expect(batcher.next(now: 109) == .wait(until: 110))
        #expect(batcher.next(now: 110).names == ["a", "b"])
        #expect(batcher.next(now: 500) == .idle)
        batcher.answered(.accepted(rejected: 0), now: 500, random: 0)
        #expect(batcher.next(now: 500) == .idle)
        #expect(batcher.counts == .init(exported: 2))
    }

    @Test func `a full batch goes at once, and the next when it is answered`() {
        let batcher = batcher()
        let wakes = ["a", "b", "c", "d"].map { batcher.add(span($0), now: 0) }
        #expect(wakes == [true, false, true, false])
        #expect(batcher.next(now: 0).names == ["a", "b", "c"])
        #expect(batcher.next(now: 900) == .idle)
        batcher.answered(.accepted(rejected: 2), now: 900, random: 0)
        #expect(batcher.counts == .init(exported: 1, refused: 2))
        #expect(batcher.next(now: 900).names == ["d"])
    }

    @Test func `more than may wait are forgotten and counted`() {
        let batcher = batcher()
        for name in ["a", "b", "c", "d", "e", "f", "g"] { _ = batcher.add(span(name), now: 0) }
        #expect(batcher.counts == .init(dropped: 2) && batcher.count == 5)
        let size = span("a").bytesMax
        let narrow = self.batcher { $0.waitingBytesMax = 2 * size }
        for name in ["a", "b", "c"] { _ = narrow.add(span(name), now: 0) }
        #expect(narrow.counts == .init(dropped: 1) && narrow.count == 2)
        #expect(narrow.next(now: 100).names == ["a", "b"])
        // Spans in flight make room in the queue.
        _ = narrow.add(span("d"), now: 100)
        #expect(narrow.counts == .init(dropped: 1))
    }

    @Test func `a batch is no longer than its bytes, unless one span is`() {
        let size = span("a").bytesMax
        let batcher = batcher { $0.batchBytesMax = 2 * size + 1 }
        for name in ["a", "b", "c"] { _ = batcher.add(span(name), now: 0) }
        #expect(batcher.next(now: 0).names == ["a", "b"])
        let narrow = self.batcher { $0.batchBytesMax = 1 }
        for name in ["a", "b"] { _ = narrow.add(span(name), now: 0) }
        #expect(narrow.next(now: 100).names == ["a"])
    }

    @Test func `what may be sent again is, ever later, and then given up`() {
        let batcher = batcher()
        _ = batcher.add(span("a"), now: 0)
        #expect(batcher.next(now: 100).names == ["a"])
        batcher.answered(.retry(after: nil), now: 100, random: 0)
        #expect(batcher.next(now: 100) == .wait(until: 600))
        _ = batcher.add(span("b"), now: 200)
        #expect(batcher.next(now: 600).names == ["a"])
        batcher.answered(.retry(after: nil), now: 600, random: .max)
        #expect(batcher.next(now: 600) == .wait(until: 2_600))
        #expect(batcher.next(now: 2_600).names == ["a"])
        batcher.answered(.retry(after: nil), now: 2_600, random: .max)
        #expect(batcher.counts == .init(undelivered: 1))
        #expect(batcher.next(now: 2_600).names == ["b"])
    }

    @Test func `a collector is left alone as long as it asks, within reason`() {
        let batcher = batcher()
        _ = batcher.add(span("a"), now: 0)
        _ = batcher.next(now: 100)
        batcher.answered(.retry(after: 3), now: 100, random: 0)
        #expect(batcher.next(now: 100) == .wait(until: 3_100))
        _ = batcher.next(now: 3_100)
        batcher.answered(.retry(after: .max), now: 3_100, random: 0)
        #expect(batcher.next(now: 3_100) == .wait(until: 7_100))
    }

    @Test func `what is refused is not sent again`() {
        let batcher = batcher()
        _ = batcher.add(span("a"), now: 0)
        _ = batcher.next(now: 100)
        batcher.answered(.refused, now: 100, random: 0)
        #expect(batcher.counts == .init(refused: 1))
        #expect(batcher.next(now: 100) == .idle && batcher.count == 0)
        // An answer without a request changes nothing.
        batcher.answered(.refused, now: 100, random: 0)
        #expect(batcher.counts == .init(refused: 1))
    }

    @Test func `at the end all goes out at once, and once more at most`() {
        let batcher = batcher()
        _ = batcher.add(span("a"), now: 0)
        _ = batcher.next(now: 100)
        batcher.answered(.retry(after: 4), now: 100, random: .max)
        _ = batcher.add(span("b"), now: 110)
        batcher.end(now: 120)
        #expect(!batcher.add(span("late"), now: 120))
        #expect(batcher.next(now: 120).names == ["a"])
        batcher.answered(.retry(after: 4), now: 130, random: .max)
        #expect(batcher.next(now: 130).names == ["b"])
        batcher.answered(.accepted(rejected: 0), now: 140, random: .max)
        #expect(batcher.next(now: 140) == .done)
        #expect(batcher.counts == .init(exported: 1, dropped: 1, undelivered: 1))
    }

    @Test func `every span is kept, or counted once, whatever happens`() {
        for seed in 0..<200 as Range<UInt64> {
            var random = SplitMix64(seed: seed)
            let batcher = batcher()
            var (now, given): (Int64, UInt64) = (0, 0)
            for _ in 0..<300 {
                now += .random(in: 0...400, using: &random)
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<5:
                    given += 1
                    _ = batcher.add(span("\(given)"), now: now)
                case 5..<8: _ = batcher.next(now: now)
                default:
                    let answer = [
                        ExportAnswer.accepted(rejected: .random(in: 0...9, using: &random)),
                        .refused, .retry(after: nil), .retry(after: 2),
                    ].randomElement(using: &random)
                    batcher.answered(answer ?? .refused, now: now, random: .max / 2)
                }
                if seed.isMultiple(of: 3), given == 60 { batcher.end(now: now) }
                let counts = batcher.counts
                let known =
                    counts.exported + counts.dropped + counts.refused + counts.undelivered
                #expect(known + UInt64(batcher.count) == given)
                #expect(batcher.count <= 5 + 3)
            }
            batcher.abandon()
            #expect(batcher.count == 0)
            #expect(batcher.next(now: now) == .done)
        }
    }
}

/// The exporter, with a collector whose answers a test prescribes.
@Suite struct SpanExporterTests {
    private func terms() -> SpanBatcher.Terms {
        var terms = SpanBatcher.Terms()
        terms.interval = 5
        terms.backoff = 2
        terms.waitingMax = 10
        return terms
    }

    private static func milliseconds() -> Int64 {
        let now = ContinuousClock.now
        let parts = (now - start).components
        return parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000
    }

    private static let start = ContinuousClock.now

    @Test func `spans are sent, again where they may be, and the rest at the end`() async {
        let sent = Mutex<[[String]]>([])
        let exporter = SpanExporter(terms(), now: Self.milliseconds) { spans in
            sent.withLock { sent in
                sent.append(spans.map(\.name))
                return sent.count == 1 ? .retry(after: nil) : .accepted(rejected: 0)
            }
        }
        exporter.start()
        exporter.take(span("a"))
        while exporter.counts.exported < 1 { await Task.yield() }
        exporter.take(span("b"))
        exporter.take(span("c"))
        await exporter.stop(within: .seconds(60))
        #expect(exporter.counts == .init(exported: 3))
        #expect(sent.withLock { $0 }.prefix(2) == [["a"], ["a"]])
        exporter.take(span("late"))
        #expect(exporter.counts == .init(exported: 3, dropped: 1))
    }

    @Test func `a collector that never answers holds nothing up, and no memory`() async {
        let began = AsyncStream.makeStream(of: Void.self)
        let cancelled = Mutex(false)
        let exporter = SpanExporter(terms(), now: Self.milliseconds) { _ in
            began.continuation.yield()
            try? await Task.sleep(for: .seconds(3_600))
            cancelled.withLock { $0 = Task.isCancelled }
            return .retry(after: nil)
        }
        exporter.start()
        exporter.take(span("first"))
        for await _ in began.stream { break }
        for number in 0..<1_000 { exporter.take(span("\(number)")) }
        #expect(exporter.counts == .init(dropped: 990))
        await exporter.stop(within: .milliseconds(20))
        #expect(cancelled.withLock { $0 })
        #expect(exporter.counts == .init(dropped: 990, undelivered: 11))
    }
}
