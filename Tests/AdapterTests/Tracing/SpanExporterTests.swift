import Synchronization
import Testing

@testable import GatewayTelemetry

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
