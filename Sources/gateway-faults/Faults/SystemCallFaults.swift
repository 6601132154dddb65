import Foundation
import GatewayTestSupport

/// Makes system calls of a running gateway fail or take long, by `strace`, until ``end()``.
final class SystemCallFaults {
    private let program: TestProgram
    private let log: String

    /// Begins; returns when the calls of every thread are traced. Throws ``RowSkipped`` when strace
    /// is missing or may not trace other processes.
    ///
    /// - Parameters:
    ///   - calls: Names of system calls, such as `fdatasync`.
    ///   - injection: In strace's terms, such as `error=EIO` or `delay_enter=50000`.
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

    /// Ends the faults; the gateway continues. Returns the number of calls that got the fault.
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
