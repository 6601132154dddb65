import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

@testable import gateway_bench

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
