import Foundation

/// One run of the `timeline-gateway` program. Its standard output is read by a thread, its
/// standard error goes to a file.
final class GatewayProcessChild: Sendable {
    private struct State {
        var output: [UInt8] = []
        var isOutputOver = false
        var exit: GatewayProcessExit?
    }

    let pid: Int32
    private let state = TestHTTPMonitor(State())
    private let errorFile: String

    /// Where the daemon is: `TIMELINE_GATEWAY_BINARY`, or beside the test bundle.
    static func program() throws -> String {
        try ProcessInfo.processInfo.environment["TIMELINE_GATEWAY_BINARY"]
            ?? program(named: "timeline-gateway")
    }

    /// Where another program of this package is: beside the test bundle.
    static func program(named name: String) throws -> String {
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
        throw GatewayProcessError("\(name) is not beside the tests")
    }

    /// Starts `timeline-gateway`, or another program by its path, with a limit of open files.
    init(
        _ arguments: [String], environment: [String: String] = [:], program: String? = nil,
        openFiles: Int? = nil
    ) throws {
        var program = try program ?? Self.program()
        var arguments = arguments
        if let openFiles {
            // The shell becomes the program: the process id stays the same.
            let script = "ulimit -n \(openFiles) && exec \"$0\" \"$@\""
            arguments = ["-c", script, program] + arguments
            program = "/bin/sh"
        }
        errorFile = NSTemporaryDirectory() + "timeline-gateway-stderr-" + UUID().uuidString
        var pipe: [Int32] = [-1, -1]
        guard Glibc.pipe(&pipe) == 0 else { throw GatewayProcessError("no pipe: \(errno)") }
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
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        // Variables of that prefix are configuration: only the test's own may reach the daemon.
        let inherited = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("TIMELINE_GATEWAY_") }
        let variables = inherited.merging(environment) { $1 }
        var spawned: pid_t = 0
        let failure = withCStrings([program] + arguments) { argv in
            withCStrings(variables.map { "\($0)=\($1)" }) { envp in
                posix_spawn(&spawned, program, &actions, &attributes, argv, envp)
            }
        }
        close(pipe[1])
        guard failure == 0 else {
            close(pipe[0])
            throw GatewayProcessError("\(program): \(String(cString: strerror(failure)))")
        }
        GatewayProcessLeftovers.add(process: spawned)
        GatewayProcessLeftovers.add(path: errorFile)
        let (pid, state, source) = (spawned, state, pipe[0])
        self.pid = pid
        onThread { Self.read(source, into: state) }
        onThread { Self.waitForExit(of: pid, into: state) }
    }

    /// Has every file that is open now closed in the programs that are started: sockets of other
    /// tests would count against a child's limit of open files, and their peers would never see
    /// them closed.
    private static func keepOpenFilesFromChildren() {
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for file in open.compactMap({ Int32($0) }) where file > 2 {
            _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        }
    }

    deinit {
        GatewayProcessLeftovers.remove(path: errorFile)
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
        var status: Int32 = 0
        // Until this returns the number stays taken, so that no signal reaches another process.
        while waitid(pid, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        GatewayProcessLeftovers.remove(process: pid)
        state.update { state in
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            state.exit = signal == 0 ? .status((status >> 8) & 0xFF) : .signal(signal)
        }
    }

    private static func waitid(_ pid: pid_t, _ options: Int32) -> Int32 {
        var info = siginfo_t()
        return Glibc.waitid(P_PID, id_t(pid), &info, options)
    }

    // MARK: Watching

    /// Sends a signal if it still runs.
    func signal(_ number: Int32) {
        state.update { if $0.exit == nil { _ = kill(pid, number) } }
    }

    /// How it ended; `nil` when it did not within `seconds`.
    func waitForExit(seconds: Double) -> GatewayProcessExit? {
        state.wait(seconds: seconds) { $0.exit }
    }

    /// The first whole line of its standard output that starts with `prefix`; `nil` when there
    /// was none within `seconds` or before it ended.
    func waitForLine(prefix: String, seconds: Double) -> String? {
        state.wait(seconds: seconds) { state -> String?? in
            let text = String(decoding: state.output, as: UTF8.self)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            if let line = lines.dropLast().first(where: { $0.hasPrefix(prefix) }) {
                return .some(String(line))
            }
            return state.isOutputOver ? .some(nil) : nil
        } ?? nil
    }

    /// A whole line of its standard output, counted from 0; `nil` when there was none within
    /// `seconds` or before it ended.
    func waitForLine(_ index: Int, seconds: Double) -> String? {
        state.wait(seconds: seconds) { state -> String?? in
            let text = String(decoding: state.output, as: UTF8.self)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            if lines.count > index { return .some(String(lines[index])) }
            return state.isOutputOver ? .some(nil) : nil
        } ?? nil
    }

    /// Its standard output so far.
    var outputSoFar: String {
        state.wait(seconds: 0) { String(decoding: $0.output, as: UTF8.self) } ?? ""
    }

    /// All of its standard output; `nil` when it stayed open.
    func waitForOutput(seconds: Double) -> String? {
        state.wait(seconds: seconds) {
            $0.isOutputOver ? String(decoding: $0.output, as: UTF8.self) : nil
        }
    }

    /// The last lines of its standard error.
    var standardErrorTail: String {
        let text = (try? String(contentsOfFile: errorFile, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").suffix(30).joined(separator: "\n")
    }
}

private func withCStrings<Result>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
    let copies = strings.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies + [nil])
}
