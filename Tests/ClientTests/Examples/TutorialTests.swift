import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Returns a file of the tutorial.
private func resource(_ name: String) throws -> String {
    let directory = #filePath.replacing(
        "Tests/ClientTests/Examples/TutorialTests.swift",
        with: "Sources/TimelineRuntime/TimelineRuntime.docc/Resources/")
    return try String(contentsOfFile: directory + name, encoding: .utf8)
}

/// The program at the end of the tutorial, and the steps of its reader.
@Suite(.serialized, .timeLimit(.minutes(30))) struct TutorialTests {
    /// Runs every command as its reader types it, with two substitutions: a running gateway for the
    /// one that `Deploy/run` starts, and for `swift` the program that `swift run` would build and
    /// run.
    @Test func theWidgetFollowsTheServer() throws {
        let gateway = try GatewayProcess()
        let reader = try Reader(gateway)
        // The files that the reader made in earlier sections.
        try reader.write("ferry/catalog.yaml", resource("Ferry-catalog.yaml"))
        let first = try reader.terminal("variables", "commands")
        defer { reader.endSwift() }
        try reader.wait(for: "on time", in: first)
        let (exit, output) = try reader.run("variables", "change")
        #expect(exit == .status(0), "\(output)")
        try reader.wait(for: "12 minutes late", in: first)
    }

    /// Each stage contains everything of the previous one, as its reader types it.
    @Test func everyStageGoesOnFromTheOneBefore() throws {
        var before: [Substring] = []
        for name in ["Ferry-1", "Ferry-2", "Ferry-3", "Final/Ferry-4"] {
            let lines = try resource(name + ".swift").split(separator: "\n")
            var rest = lines[...]
            for line in before {
                let place = try #require(rest.firstIndex(of: line), "\(name): \(line)")
                rest = rest[(place + 1)...]
            }
            #expect(lines.count > before.count)
            before = lines
        }
    }
}

/// A reader who follows the tutorial, in a directory that contains this project and `ferry`.
private struct Reader {
    private let directory: String

    init(_ gateway: GatewayProcess) throws {
        directory = try GatewayProcess.temporaryDirectory()
        let files = FileManager.default
        let project = directory + "/timeline-gateway"
        for path in [project + "/.build-run", project + "/.build-release", directory + "/ferry"] {
            try files.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        // As after `Deploy/run`.
        try files.createSymbolicLink(
            atPath: project + "/.build-run/data", withDestinationPath: gateway.data)
        let programs = URL(filePath: try GatewayProcess.program(named: "timelinectl"))
            .deletingLastPathComponent().path
        try files.createSymbolicLink(
            atPath: project + "/.build-release/release", withDestinationPath: programs)
        try write(
            "timeline-gateway/.build-run/env", "URL='\(gateway.url)'\nCA='\(gateway.ca)'\n")
        try files.createDirectory(
            atPath: directory + "/bin", withIntermediateDirectories: true)
        try write(
            "bin/swift",
            """
            #!/bin/sh
            [ "$*" = run ] || exit 64
            echo $$ >"\(directory)/swift.pid"
            exec "\(programs)/ferry-tutorial"
            """)
        try files.setAttributes(
            [.posixPermissions: 0o700], ofItemAtPath: directory + "/bin/swift")
    }

    func write(_ path: String, _ text: String) throws {
        try text.write(toFile: directory + "/" + path, atomically: true, encoding: .utf8)
    }

    /// Starts a terminal in which the snippets are typed, one after the other; it keeps running.
    func terminal(_ snippets: String...) throws -> TestProgram {
        try TestProgram("/bin/bash", arguments(snippets))
    }

    func run(_ snippets: String...) throws -> (exit: GatewayProcessExit, output: String) {
        try GatewayProcess.run(arguments(snippets), program: "/bin/bash")
    }

    /// Shows the widget in the second terminal until it contains this text.
    func wait(for text: String, in first: TestProgram) throws {
        var output = ""
        try blockUntil(
            "shown", details: { "\(output)\n\(first.output)\n\(first.standardErrorTail)" }
        ) {
            let shown = try run("variables", "show")
            output = shown.output
            return shown.exit == .status(0) && output.contains(text)
        }
    }

    /// Stops the program that runs in the first terminal, like Ctrl-C.
    func endSwift() {
        let text = try? String(contentsOfFile: directory + "/swift.pid", encoding: .utf8)
        let pid = text.flatMap { pid_t($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        if let pid { kill(pid, SIGINT) }
    }

    private func arguments(_ snippets: [String]) throws -> [String] {
        let texts = try snippets.map { try resource("Ferry-\($0).sh") }
        let place = """
            cd "\(directory)/timeline-gateway"
            PATH="\(directory)/bin:$PATH"

            """
        return ["-euc", place + texts.joined(separator: "\n")]
    }
}
