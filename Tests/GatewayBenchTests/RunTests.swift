import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

@testable import gateway_bench

/// The program itself, with a real gateway and the smallest sizes.
@Suite(.serialized) struct RunTests {
    @Test func aQuickRunMeasuresEverythingAndLeavesNothingBehind() throws {
        let run = try BenchRun(
            [
                "all", "--quick", "--json", "--streams", "50", "--clients", "20", "--handshakes",
                "40",
                "--requests", "200", "--stalled", "5", "--widgets", "5000",
            ])
        let (exit, output) = run.wait()
        #expect(exit == .status(0), "\(run.errors)")
        let report = try #require(try JSONValue(parsing: Array(output.utf8)).objectValue)
        #expect(report["lossless"] == true)
        #expect(report["failures"] == [])
        let rows = (report["rows"]?.arrayValue ?? []).compactMap(\.objectValue)
        var measured: [String: Set<String>] = [:]
        for row in rows {
            let (scenario, name) = (row["scenario"]?.stringValue, row["name"]?.stringValue)
            measured[scenario ?? "", default: []].insert(name ?? "")
        }
        #expect(Set(measured.keys) == Set(ScenarioName.usual.map(\.rawValue)))
        for (scenario, names) in Self.expected {
            #expect(measured[scenario]?.isSuperset(of: names) == true, "\(scenario)")
        }
        let closed = rows.first { $0["name"] == "stalled streams closed" }
        #expect(closed?["value"] == 5 || closed?["value"] == .number(5))
        #expect(try run.leftovers() == [])
    }

    @Test func streamsOverHTTP2AreMeasuredWithoutBars() throws {
        let run = try BenchRun(
            ["fanout", "--http2", "--quick", "--json", "--streams", "20"])
        let (exit, output) = run.wait()
        #expect(exit == .status(0), "\(run.errors)")
        let report = try #require(try JSONValue(parsing: Array(output.utf8)).objectValue)
        #expect(report["lossless"] == true)
        #expect(report["settings"]?.objectValue?["http2"] == true)
        let rows = (report["rows"]?.arrayValue ?? []).compactMap(\.objectValue)
        #expect(Set(rows.map { $0["scenario"]?.stringValue }) == ["fanout h2"])
        let names = Set(rows.compactMap { $0["name"]?.stringValue })
        #expect(names.isSuperset(of: Self.expected["fanout"] ?? []))
        let memory = try #require(rows.first { $0["name"] == "memory per idle stream" })
        #expect(memory["atMost"] == nil && memory["met"] == nil)
        #expect(try run.leftovers() == [])
    }

    @Test(arguments: [["--http2"], ["fanout", "slow", "--http2"]])
    func onlyTwoScenariosAreMeasuredOverHTTP2(arguments: [String]) throws {
        let run = try BenchRun(arguments)
        #expect(run.wait().exit == .status(64))
        #expect(run.errors.contains("only fanout and latency"))
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func aSignalStopsTheGatewayAndRemovesItsDirectory(signal: Int32) throws {
        let run = try BenchRun(["fanout", "--streams", "20"])
        var gateway: pid_t?
        for _ in 0..<1_000 where gateway == nil || !run.errors.contains("closed loop") {
            gateway = ProcessStats.children(of: run.program.pid).first ?? gateway
            usleep(10_000)
        }
        let child = try #require(gateway, "no gateway was started: \(run.errors)")
        kill(run.program.pid, signal)
        #expect(run.wait().exit == .status(128 + signal))
        #expect(kill(child, 0) == -1 && errno == ESRCH, "the gateway still runs")
        #expect(try run.leftovers() == [])
    }

    @Test func whatDoesNotFitIsSaidBeforeAnythingStarts() throws {
        let run = try BenchRun(["fanout", "--streams", "9999999"])
        #expect(run.wait().exit == .status(64))
        #expect(run.errors.contains("enough for"))
        #expect(try run.leftovers() == [])
    }

    private static let expected: [String: Set<String>] = [
        "fanout": [
            "server CPU per delivery", "deliveries", "p50", "p99", "lost", "stray",
            "memory per idle stream", "server CPU per connection",
        ],
        "latency": ["p50 from the schedule", "p99 from the schedule", "lost"],
        "handshake": ["server CPU per full handshake", "server CPU per resumed handshake"],
        "burst": ["one batch / one at a time", "pipelined / one at a time", "lost"],
        "slow": ["p99, closed loop, some stalled", "stalled streams closed"],
        "storm": ["reconnect / plain request", "server CPU of all reconnects"],
        "accept": ["changes alone", "changes in batches of 100"],
        "register": ["registrations"],
        "decide": ["decisions, 5000 widgets", "time per decision, 5000 widgets"],
    ]
}

/// `gateway-bench` as a process of its own, with a directory of its own for temporary files.
private final class BenchRun {
    let program: TestProgram
    private let directory: String

    /// Starts the program. It measures the gateway that `TIMELINE_GATEWAY_BINARY` names, or the one
    /// in its own directory, which is that of the tests.
    init(_ arguments: [String]) throws {
        directory = try GatewayProcess.temporaryDirectory()
        let gateway = ProcessInfo.processInfo.environment["TIMELINE_GATEWAY_BINARY"]
        program = try TestProgram(
            GatewayProcess.program(named: "gateway-bench"),
            arguments + (gateway.map { ["--gateway", $0] } ?? []),
            environment: ["TMPDIR": directory])
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// The last part of its standard error so far.
    var errors: String { program.standardErrorTail }

    /// Waits for its end.
    func wait() -> (exit: GatewayProcessExit?, output: String) {
        (program.waitForExit(seconds: 600), program.waitForOutput(seconds: 10) ?? "")
    }

    /// Returns the temporary files that it left behind.
    func leftovers() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory)
    }
}
