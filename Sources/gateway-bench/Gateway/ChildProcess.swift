import Foundation

/// A process that was started here. Its output goes to files.
final class ChildProcess {
    /// Its process id.
    let pid: pid_t
    private var status: Int32?

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - cores: The only ones it may use; `nil` for all this process may use.
    ///   - output: The file its standard output goes to.
    ///   - errors: The file its standard error goes to.
    ///   - environment: Variables set beside this process's own.
    init(
        _ program: String, _ arguments: [String], cores: [Int]?, output: String, errors: String,
        environment: [String: String] = [:]
    ) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        for (descriptor, path) in [(Int32(1), output), (2, errors)] {
            posix_spawn_file_actions_addopen(
                &actions, descriptor, path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A group of its own: Ctrl-C is for this process, which then stops the child in order.
        posix_spawnattr_setpgroup(&attributes, 0)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))
        // Variables of that prefix configure the gateway: only our own may reach it.
        let variables = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("TIMELINE_GATEWAY_") }.merging(environment) { $1 }
        // The kernel hands the starting thread's cores down.
        let own = Machine.allowedCores()
        if let cores { try Machine.pin(to: cores) }
        defer { if cores != nil { try? Machine.pin(to: own) } }
        var spawned: pid_t = 0
        let failure = Self.withCStrings([program] + arguments) { argv in
            Self.withCStrings(variables.map { "\($0)=\($1)" }) { envp in
                posix_spawn(&spawned, program, &actions, &attributes, argv, envp)
            }
        }
        guard failure == 0 else {
            throw BenchFailure("\(program): \(String(cString: strerror(failure)))")
        }
        pid = spawned
    }

    /// Whether it has not ended.
    var isRunning: Bool { exitStatus() == nil }

    /// Its exit status, 128 + signal when one ended it; `nil` while it runs.
    func exitStatus() -> Int32? {
        if let status { return status }
        var raw: Int32 = 0
        guard waitpid(pid, &raw, WNOHANG) == pid else { return nil }
        let signal = raw & 0x7F
        status = signal == 0 ? (raw >> 8) & 0xFF : 128 + signal
        return status
    }

    /// Waits for its end.
    ///
    /// - Throws: ``Interruption``; ``BenchFailure`` when it does not end within `seconds`.
    func wait(seconds: Double) throws -> Int32 {
        let end = monotonicNanoseconds() + Int64(seconds * 1e9)
        while monotonicNanoseconds() < end {
            if let status = exitStatus() { return status }
            try Interruption.check()
            usleep(2_000)
        }
        throw BenchFailure("process \(pid) did not end within \(Int(seconds)) s")
    }

    /// SIGTERM, and SIGKILL when that does not help within `seconds`; returns when it is gone.
    /// Goes on when a signal arrives: this is how one cleans up.
    ///
    /// - Returns: The exit status.
    @discardableResult
    func stop(seconds: Double = 20) -> Int32 {
        let end = monotonicNanoseconds() + Int64(seconds * 1e9)
        if isRunning { kill(pid, SIGTERM) }
        while isRunning {
            if monotonicNanoseconds() > end { kill(pid, SIGKILL) }
            usleep(5_000)
        }
        return exitStatus() ?? -1
    }

    private static func withCStrings<Result>(
        _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        // Sound: the copies live until `body` has returned, and the list ends with a null.
        let copies = texts.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        return body(copies + [nil])
    }
}
