import Foundation
import WidgetModel

/// A program as a process of its own; killed when this value goes. A thread reads its standard output,
/// its standard error goes to a file.
package final class TestProgram: Sendable {
    private struct State {
        var output: [UInt8] = []
        var isOutputOver = false
        var exit: GatewayProcessExit?

        /// The whole lines of the output.
        var lines: ArraySlice<Substring> {
            String(decoding: output, as: UTF8.self)
                .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        }
    }

    /// The process id.
    package let pid: Int32
    private let state = TestHTTPMonitor(State())
    private let errorFile: String

    /// Starts a program by its path, with `environment` beside this process's own variables. Throws
    /// ``TestFailure``.
    package init(
        _ program: String, _ arguments: [String], environment: [String: String] = [:]
    ) throws {
        errorFile = NSTemporaryDirectory() + "timeline-gateway-stderr-" + UUID().uuidString
        var pipe: [Int32] = [-1, -1]
        guard Glibc.pipe(&pipe) == 0 else { throw TestFailure("no pipe: \(errno)") }
        // A pipe's ends must not leak into other children, which would keep it open.
        for end in pipe { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, pipe[1], 1)
        posix_spawn_file_actions_addopen(
            &actions, 2, errorFile, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        Self.keepOpenFilesFromChildren()
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        // A thread of a task blocks signals.
        var blocked = sigset_t()
        sigemptyset(&blocked)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        // Variables of that prefix are configuration: only the caller's own may reach the daemon.
        let inherited = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("TIMELINE_GATEWAY_") }
        let variables = inherited.merging(environment) { $1 }
        var spawned: pid_t = 0
        let failure = Self.withCStrings([program] + arguments) { argv in
            Self.withCStrings(variables.map { "\($0)=\($1)" }) { envp in
                posix_spawn(&spawned, program, &actions, &attributes, argv, envp)
            }
        }
        close(pipe[1])
        guard failure == 0 else {
            close(pipe[0])
            throw TestFailure("\(program): \(String(cString: strerror(failure)))")
        }
        GatewayProcessLeftovers.add(process: spawned)
        GatewayProcessLeftovers.add(path: errorFile)
        let (pid, state, source) = (spawned, state, pipe[0])
        self.pid = pid
        onThread { Self.read(source, into: state) }
        onThread { Self.waitForExit(of: pid, into: state) }
    }

    deinit {
        kill()
        GatewayProcessLeftovers.remove(path: errorFile)
    }

    /// The path of a program of this package, which stands beside the running one.
    package static func path(of name: String) throws -> String {
        let executable =
            Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        var directory = executable.resolvingSymlinksInPath().deletingLastPathComponent()
        while directory.path != "/" {
            let path = directory.appendingPathComponent(name).path
            var isDirectory: ObjCBool = false
            if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
                !isDirectory.boolValue
            {
                return path
            }
            directory.deleteLastPathComponent()
        }
        throw TestFailure("\(name) is not beside this program")
    }

    /// Makes started programs close every file that is open now: sockets of other tests would count
    /// against a child's limit of open files, and their peers would never see them closed.
    private static func keepOpenFilesFromChildren() {
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for file in open.compactMap({ Int32($0) }) where file > 2 {
            _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        }
    }

    private static func read(_ source: Int32, into state: TestHTTPMonitor<State>) {
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(source, &bytes, bytes.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            state.update { $0.output += bytes[..<count] }
        }
        close(source)
        state.update { $0.isOutputOver = true }
    }

    private static func waitForExit(of pid: pid_t, into state: TestHTTPMonitor<State>) {
        var info = siginfo_t()
        // Until this returns the number stays taken, so that no signal reaches another process.
        while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        GatewayProcessLeftovers.remove(process: pid)
        state.update { state in
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            state.exit = signal == 0 ? .status((status >> 8) & 0xFF) : .signal(signal)
        }
    }

    private static func withCStrings<Result>(
        _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        // Sound: the copies live until `body` has returned, and the list ends with a null.
        let copies = strings.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        return body(copies + [nil])
    }

    // MARK: Signals

    /// Sends a signal if it still runs; does not wait.
    package func signal(_ number: Int32) {
        state.update { if $0.exit == nil { _ = Glibc.kill(pid, number) } }
    }

    /// SIGKILL; returns when it is gone.
    package func kill() {
        signal(SIGKILL)
        _ = waitForExit()
    }

    /// SIGINT; does not wait.
    package func interrupt() { signal(SIGINT) }

    // MARK: Results

    /// Waits for its end; `nil` when that did not come within `seconds`.
    package func waitForExit(seconds: Double = Patience.seconds) -> GatewayProcessExit? {
        state.wait(seconds: seconds) { $0.exit }
    }

    /// The first whole line of its standard output that starts with `prefix`; `nil` when there
    /// was none within `seconds` or before it ended.
    package func waitForLine(prefix: String, seconds: Double = Patience.seconds) -> String? {
        state.wait(seconds: seconds) { state -> Substring?? in
            if let line = state.lines.first(where: { $0.hasPrefix(prefix) }) { return .some(line) }
            return state.isOutputOver ? .some(nil) : nil
        }.flatMap { $0.map(String.init) }
    }

    /// Waits for a line of its standard output and returns it as a JSON object; `nil` when it is
    /// none. Throws ``TestFailure`` when there is no such line in time.
    package func json(line index: Int) throws -> JSONObject? {
        let line = state.wait(seconds: Patience.seconds) { state -> Substring?? in
            let lines = state.lines
            if lines.count > index { return .some(lines[index]) }
            return state.isOutputOver ? .some(nil) : nil
        }
        guard let line, let line else {
            throw TestFailure("there is no line \(index):\n\(output)\n\(standardErrorTail)")
        }
        return try? JSONValue(parsing: Array(line.utf8)).objectValue
    }

    /// Its standard output so far.
    package var output: String { state.update { String(decoding: $0.output, as: UTF8.self) } }

    /// All of its standard output; `nil` when it stayed open.
    package func waitForOutput(seconds: Double = Patience.seconds) -> String? {
        state.wait(seconds: seconds) {
            $0.isOutputOver ? String(decoding: $0.output, as: UTF8.self) : nil
        }
    }

    /// The last lines of its standard error.
    package var standardErrorTail: String {
        let text = (try? String(contentsOfFile: errorFile, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").suffix(30).joined(separator: "\n")
    }
}
