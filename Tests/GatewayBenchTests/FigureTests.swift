import Testing
import WidgetModel

@testable import gateway_bench

@Suite struct RecordCounterTests {
    @Test func countsRecordsWhereverTheyAreCut() {
        var bytes: [UInt8] = []
        for length in [0, 1, 300, 16_640, 5] {
            bytes += [23, 3, 3, UInt8(length >> 8), UInt8(length & 0xFF)]
            bytes += [UInt8](repeating: 23, count: length)
        }
        for cut in Array(0...400) + Array(bytes.count - 20...bytes.count) {
            var counter = RecordCounter()
            let (first, second) = (Array(bytes[..<cut]), Array(bytes[cut...]))
            counter.take(first.span)
            counter.take(second.span)
            #expect(counter.count == 5, "cut at \(cut)")
        }
        var counter = RecordCounter()
        for byte in bytes.dropLast() {
            let piece = [byte]
            counter.take(piece.span)
        }
        #expect(counter.count == 4, "the last one is not complete")
    }
}

@Suite struct LatencyHistogramTests {
    @Test func percentilesAreWithinABucketOfTheSortedList() {
        var (histogram, values) = (LatencyHistogram(), [Int64]())
        var state: UInt64 = 42
        for _ in 0..<20_000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let value = Int64(state >> (20 + state % 40))
            values.append(value)
            histogram.record(nanoseconds: value)
        }
        values.sort()
        for fraction in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
            let place = max(1, Int((fraction * Double(values.count)).rounded(.up))) - 1
            let exact = Double(values[place])
            let error = abs(histogram.percentile(fraction) - exact)
            #expect(error <= exact / 64, "\(fraction): \(exact)")
        }
    }

    @Test func takesTheSmallestAndTheLargest() {
        var histogram = LatencyHistogram()
        #expect(histogram.percentile(0.5) == 0)
        histogram.record(nanoseconds: -5)
        #expect(histogram.percentile(1) == 0)
        histogram.record(nanoseconds: .max)
        #expect(histogram.percentile(1) >= Double(Int64.max) * 0.98)
        #expect(histogram.count == 2)
    }
}

@Suite struct DeliveryCountTests {
    @Test func tellsOwedFromStray() {
        var count = DeliveryCount()
        count.posted(at: 1_000, to: 2)
        count.delivered(change: 0, at: 2_000)
        #expect(count.outstanding == 1)
        count.delivered(change: 1, at: 2_500)
        #expect((count.delivered, count.stray, count.outstanding) == (1, 1, 1))
        count.posted(at: 3_000, to: 2)
        count.delivered(change: 1, at: 4_000)
        #expect((count.delivered, count.outstanding, count.last) == (2, 2, 4_000))
        #expect(abs(count.latency.percentile(1) - 1_000) <= 16)
    }
}

@Suite struct ReportTests {
    @Test func aRowIsTheMedianButALossIsTheWorst() {
        var report = Report()
        for value in [5.0, 1, 3] {
            report.add([
                Sample(.accept, "changes", value, "1/s", bar: .atLeast(3)),
                .loss(.accept, "lost", value == 1 ? 7 : 0),
            ])
        }
        #expect(report.rows.map(\.value) == [3, 7])
        #expect(report.rows[0].isMet == true)
        #expect(report.rows[1].isMet == false)
        #expect(report.hasLosses)
        #expect(report.missesBar)
    }

    @Test func aPeerHasItsOwnColumnAndItsLossesCount() {
        var report = Report()
        report.add([Sample(.fanout, "CPU", 6, "us"), .loss(.fanout, "lost", 0)])
        #expect(!report.table(of: [.fanout]).contains("peer"))
        report.add([Sample(.fanout, "CPU", 12, "us"), .loss(.fanout, "lost", 0)], isPeer: true)
        #expect(report.rows[0].ratio == 0.5)
        #expect(report.table(of: [.fanout]).contains("ratio"))
        #expect(!report.hasLosses)
        report.add([.loss(.fanout, "lost", 1)], isPeer: true)
        #expect(report.hasLosses)
    }

    @Test func theReportOfHTTP2SaysSoAndKnowsNoBarsButLosses() {
        for isHTTP2 in [false, true] {
            var report = Report(isHTTP2: isHTTP2)
            let samples = [
                Sample(.fanout, "memory per idle stream", 1_000, "KiB"), .loss(.fanout, "lost", 0),
            ]
            report.add(samples)
            report.add(samples, isPeer: true)
            #expect(report.missesBar == !isHTTP2)
            #expect(report.rows.map(\.isMet) == [isHTTP2 ? nil : false, true])
            #expect(report.table(of: [.fanout]).contains("fanout h2") == isHTTP2)
        }
    }

    @Test func aScenarioThatFailedIsALoss() {
        var report = Report()
        report.failures.append((.storm, "why"))
        #expect(report.hasLosses)
        let json = report.json(machine: [("kernel", "6")], settings: .null).objectValue
        #expect(json?["lossless"] == false)
        #expect(json?["failures"] == [["scenario": "storm", "reason": "why"]])
    }

    @Test(arguments: [
        (0, "0"), (7, "7"), (-0.5, "-0.500"), (0.0004, "0.000"), (9.996, "10.00"),
        (12.345, "12.35"), (123.45, "123.5"), (54_321.6, "54322"), (0.05, "0.050"),
    ])
    func figuresHaveAboutFourDigits(value: Double, text: String) {
        #expect(Figure.text(value) == text)
    }
}
