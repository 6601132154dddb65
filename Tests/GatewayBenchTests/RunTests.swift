import Foundation
import Testing
import WidgetModel

@testable import gateway_bench

/// The program itself, against a real gateway, with everything as small as it gets.
@Suite(.serialized) struct RunTests {
    @Test func aQuickRunMeasuresEverythingAndLeavesNothingBehind() throws {
        let directory = try temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let run = try Program(
            [
                "all", "--quick", "--json", "--streams", "50", "--clients", "20", "--handshakes",
                "40",
                "--requests", "200", "--stalled", "5", "--widgets", "5000",
            ], directory: directory)
        let (status, output) = run.wait()
        #expect(status == 0, "\(run.errors)")
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
        #expect(try leftovers(directory) == [])
    }

    @Test func streamsOverHTTP2AreMeasuredWithoutBars() throws {
        let directory = try temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let run = try Program(
            ["fanout", "--http2", "--quick", "--json", "--streams", "20"], directory: directory)
        let (status, output) = run.wait()
        #expect(status == 0, "\(run.errors)")
        let report = try #require(try JSONValue(parsing: Array(output.utf8)).objectValue)
        #expect(report["lossless"] == true)
        #expect(report["settings"]?.objectValue?["http2"] == true)
        let rows = (report["rows"]?.arrayValue ?? []).compactMap(\.objectValue)
        #expect(Set(rows.map { $0["scenario"]?.stringValue }) == ["fanout h2"])
        let names = Set(rows.compactMap { $0["name"]?.stringValue })
        #expect(names.isSuperset(of: Self.expected["fanout"] ?? []))
        let memory = try #require(rows.first { $0["name"] == "memory per idle stream" })
        #expect(memory["atMost"] == nil && memory["met"] == nil)
        #expect(try leftovers(directory) == [])
    }

    @Test(arguments: [["--http2"], ["fanout", "slow", "--http2"]])
    func onlyTwoScenariosAreMeasuredOverHTTP2(arguments: [String]) throws {
        let directory = try temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let run = try Program(arguments, directory: directory)
        #expect(run.wait().status == 64)
        #expect(run.errors.contains("only fanout and latency"))
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func aSignalStopsTheGatewayAndRemovesItsDirectory(signal: Int32) throws {
        let directory = try temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let run = try Program(["fanout", "--streams", "20"], directory: directory)
        var gateway: pid_t?
        for _ in 0..<1_000 where gateway == nil || !run.errors.contains("closed loop") {
            gateway = ProcessFigures.children(of: run.pid).first ?? gateway
            usleep(10_000)
        }
        let child = try #require(gateway, "no gateway was started: \(run.errors)")
        kill(run.pid, signal)
        #expect(run.wait().status == 128 + signal)
        #expect(kill(child, 0) == -1 && errno == ESRCH, "the gateway still runs")
        #expect(try leftovers(directory) == [])
    }

    @Test func whatDoesNotFitIsSaidBeforeAnythingStarts() throws {
        let directory = try temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let run = try Program(["fanout", "--streams", "9999999"], directory: directory)
        #expect(run.wait().status == 64)
        #expect(run.errors.contains("enough for"))
        #expect(try leftovers(directory) == [])
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
