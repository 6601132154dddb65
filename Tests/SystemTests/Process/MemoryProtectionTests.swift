import Foundation
import GatewayTestSupport
import Testing

/// The keys in memory are not for other processes.
@Suite(.alone) struct MemoryProtectionTests {
    /// Runs a program without the rights to read every process, which newer kernels grant by
    /// each of these capabilities. In a container, they may be inherited, too.
    private static let plain = [
        "/usr/bin/setpriv", "--inh-caps=-sys_ptrace,-perfmon,-sys_admin",
        "--bounding-set=-sys_ptrace,-perfmon,-sys_admin",
    ]

    /// Returns whether a shell's script prints a process's map of memory.
    private static func prints(_ script: String) throws -> Bool {
        let (exit, output) = try GatewayProcess.run(
            Self.plain.dropFirst() + ["/bin/sh", "-c", script], program: Self.plain[0])
        return exit == .status(0) && output.contains("-")
    }

    @Test func `memory is neither dumped nor read`() throws {
        let gateway = try GatewayProcess(wrapper: Self.plain)
        defer { gateway.kill() }
        // A process with the same rights, the shell, is readable for its child.
        #expect(try Self.prints("cat /proc/$$/maps; true"))
        #expect(try !Self.prints("cat /proc/\(gateway.pid)/maps"))
        let limits = try String(contentsOfFile: "/proc/\(gateway.pid)/limits", encoding: .utf8)
        let core = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
        #expect(core?.split(separator: " ").suffix(3).prefix(2) == ["0", "0"])
    }
}
