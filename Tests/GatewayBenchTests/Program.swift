import Foundation
import Testing

/// `gateway-bench` as a process of its own, with a directory of its own for temporary files.
struct Program {
    /// Its process id.
    var pid: pid_t { process.processIdentifier }
    private let process = Process()
    private let output: URL
    private let errorFile: URL

    /// Starts it. What it measures is the gateway that `TIMELINE_GATEWAY_BINARY` names, or the one
    /// beside it, which is the one beside the tests.
    init(_ arguments: [String], directory: String) throws {
        let base = URL(fileURLWithPath: directory)
        output = base.appendingPathComponent("output")
        errorFile = base.appendingPathComponent("errors")
        for file in [output, errorFile] { try Data().write(to: file) }
        var arguments = arguments
        var environment = ProcessInfo.processInfo.environment
        if let gateway = environment["TIMELINE_GATEWAY_BINARY"] {
            arguments += ["--gateway", gateway]
        }
        environment["TMPDIR"] = directory + "/temporary"
        process.executableURL = try Self.program()
        process.arguments = arguments
        process.environment = environment
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: errorFile)
        try process.run()
    }

    /// What it wrote to standard error so far.
    var errors: String { (try? String(contentsOf: errorFile, encoding: .utf8)) ?? "" }

    /// Waits for its end.
    func wait() -> (status: Int32, output: String) {
        process.waitUntilExit()
        return (
            process.terminationStatus, (try? String(contentsOf: output, encoding: .utf8)) ?? ""
        )
    }

    /// It was built with the tests, which depend on it.
    private static func program() throws -> URL {
        let executable =
            Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        var directory = executable.resolvingSymlinksInPath().deletingLastPathComponent()
        while directory.path != "/" {
            let program = directory.appendingPathComponent("gateway-bench")
            var isDirectory: ObjCBool = false
            if FileManager.default.fileExists(atPath: program.path, isDirectory: &isDirectory),
                !isDirectory.boolValue
            {
                return program
            }
            directory.deleteLastPathComponent()
        }
        throw CocoaError(.fileNoSuchFile)
    }
}

/// A new directory, with one in it for a program's temporary files.
func temporaryDirectory() throws -> String {
    let path = NSTemporaryDirectory() + "gateway-bench-test-" + UUID().uuidString
    try FileManager.default.createDirectory(
        atPath: path + "/temporary", withIntermediateDirectories: true)
    return path
}

/// What a program left of its temporary files.
func leftovers(_ directory: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory + "/temporary")
}
