import OpenMetrics
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
            counter.count(first.span)
            counter.count(second.span)
            #expect(counter.total == 5, "cut at \(cut)")
        }
        var counter = RecordCounter()
        for byte in bytes.dropLast() {
            let piece = [byte]
            counter.count(piece.span)
        }
        #expect(counter.total == 4, "the last one is not complete")
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
        #expect(abs((count.latency.percentile(1) ?? 0) - 1_000) <= 16)
    }
}

@Suite struct ReportTests {
    @Test func aRowIsTheMedianButALossIsTheWorst() {
        var report = Report()
        for value in [5.0, 1, 3] {
            report.add([
                Sample(.accept, "changes", value, unit: "1/s", bar: .atLeast(3)),
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
        report.add([Sample(.fanout, "CPU", 6, unit: "us"), .loss(.fanout, "lost", 0)])
        #expect(!report.table(of: [.fanout]).contains("peer"))
        report.add(
            [Sample(.fanout, "CPU", 12, unit: "us"), .loss(.fanout, "lost", 0)], isPeer: true)
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
                Sample(.fanout, "memory per idle stream", 1_000, unit: "KiB"),
                .loss(.fanout, "lost", 0),
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
