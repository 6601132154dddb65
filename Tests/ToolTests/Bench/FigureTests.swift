import Foundation
import GatewayTelemetry
import GatewayTestSupport
import Testing
import WidgetModel

@testable import gateway_bench

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

/// The program itself, with a real gateway.
@Suite struct RunTests {
    @Test func aScenarioIsMeasuredAndLeavesNothingBehind() throws {
        let directory = try GatewayProcess.temporaryDirectory()
        let gateway = ProcessInfo.processInfo.environment["TIMELINE_GATEWAY_BINARY"]
        let program = try TestProgram(
            GatewayProcess.program(named: "gateway-bench"),
            ["register", "--quick", "--json", "--requests", "200"]
                + (gateway.map { ["--gateway", $0] } ?? []),
            environment: ["TMPDIR": directory])
        let exit = program.waitForExit(seconds: Patience.seconds)
        #expect(exit == .status(0), "\(program.standardErrorTail)")
        let output = program.waitForOutput(seconds: Patience.seconds) ?? ""
        let report = try #require(try JSONValue(parsing: Array(output.utf8)).objectValue)
        #expect(report["lossless"] == true)
        let rows = (report["rows"]?.arrayValue ?? []).compactMap(\.objectValue)
        let scenarios = rows.map { $0["scenario"]?.stringValue }
        #expect(Set(scenarios) == [ScenarioName.register.rawValue])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [])
    }
}
