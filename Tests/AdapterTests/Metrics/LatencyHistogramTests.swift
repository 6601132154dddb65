import GatewayTelemetry
import Testing
import WidgetModel

@Suite struct LatencyHistogramTests {
    @Test func percentilesAreWithinABucketOfTheSortedList() throws {
        var (histogram, values) = (LatencyHistogram(), [Int64]())
        var random = SplitMix64(seed: 42)
        for _ in 0..<20_000 {
            let value = Int64(random.next() >> (20 + random.next() % 40))
            values.append(value)
            histogram.record(nanoseconds: value)
        }
        values.sort()
        for fraction in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
            let place = max(1, Int((fraction * Double(values.count)).rounded(.up))) - 1
            let exact = Double(values[place])
            let percentile = try #require(histogram.percentile(fraction))
            #expect(abs(percentile - exact) <= exact / 64, "\(fraction): \(exact)")
        }
    }

    @Test func takesTheSmallestAndTheLargest() {
        var histogram = LatencyHistogram()
        #expect(histogram.percentile(0.5) == nil)
        histogram.record(nanoseconds: -5)
        #expect(histogram.percentile(1) == 0)
        histogram.record(nanoseconds: .max)
        #expect(histogram.percentile(1) ?? 0 >= Double(Int64.max) * 0.98)
        #expect(histogram.count == 2)
    }
}
