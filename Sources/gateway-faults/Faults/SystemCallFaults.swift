import Foundation
import GatewayTestSupport

/// Makes system calls of a running gateway fail or take long, by `strace`, until ``end()``.
final class SystemCallFaults {
    private let program: TestProgram
    private let log: String

    /// Begins; returns when the calls of every thread are watched.
    ///
    /// - Parameters:
    ///   - calls: Names of system calls, such as `fdatasync`.
    ///   - injection: What strace calls it, such as `error=EIO` or `delay_enter=50000`.
    /// - Throws: ``RowSkipped`` when strace is missing or may not watch other processes.
    init(_ gateway: GatewayProcess, calls: [String], injection: String) throws {
        log = try GatewayProcess.temporaryDirectory() + "/strace"
        let names = calls.joined(separator: ",")
        program = try TestProgram(
            "/usr/bin/strace",
            [
                "-f", "-p", "\(gateway.pid)", "-o", log, "-e", "trace=\(names)", "-e",
                "signal=none", "-e", "inject=\(names):\(injection)",
            ])
        for _ in 0..<200 {
            if program.standardErrorTail.contains("attached") { return }
            if program.waitForExit(seconds: 0.05) != nil { break }
        }
        throw RowSkipped(reason: "strace cannot attach: \(program.standardErrorTail)")
    }

    /// Ends it; the gateway goes on without faults.
    ///
    /// - Returns: The number of calls that were given the fault.
    @discardableResult
    func end() -> Int {
        program.interrupt()
        _ = program.waitForExit()
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").count {
            $0.contains("(INJECTED)") || $0.contains("DELAYED")
        }
    }

    deinit { program.kill() }
}
