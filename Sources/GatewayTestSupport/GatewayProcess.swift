import Foundation

/// The real daemon, as a process of its own. It is killed when this value goes, and at the latest
/// when this process exits, so that a failed test leaves nothing running.
package final class GatewayProcess: TestGateway, @unchecked Sendable {
    // Sound: `child` and `address` are touched only while `lock` is held; the rest never changes.
    private let lock = NSLock()
    private var child: TestProgram?
    private var address = ""

    /// The data directory; kept across restarts, removed at the end when it was made here.
    package let data: String
    private let ownsData: Bool
    private let configuration: String?
    private let authority: String?
    /// Host and port of the admin port, as they were chosen.
    package let admin: String
    private let program: String?
    private let environment: [String: String]
    private let wrapper: [String]

    /// Starts the daemon and waits until it accepts connections.
    ///
    /// - Parameters:
    ///   - data: A data directory; a new temporary one when `nil`.
    ///   - configuration: A configuration file; `nil` for the development mode.
    ///   - program: The daemon's program; `nil` for ``program()``.
    ///   - admin: Host and port of the admin port. Default: a port that is not announced.
    ///   - ca: The CA that its certificate chains to. Default: the development mode's.
    ///   - environment: Variables set beside this process's own.
    ///   - wrapper: A program and its arguments that then becomes the daemon, such as `prlimit`.
    /// - Throws: ``TestFailure`` with the end of its standard error when it does not start.
    package init(
        program: String? = nil, data: String? = nil, configuration: String? = nil,
        admin: String = "127.0.0.1:0", ca: String? = nil, environment: [String: String] = [:],
        wrapper: [String] = [], startsNow: Bool = true
    ) throws {
        ownsData = data == nil
        self.data = try data ?? Self.temporaryDirectory()
        self.program = program
        self.configuration = configuration
        self.admin = admin
        authority = ca
        self.environment = environment
        self.wrapper = wrapper
        if startsNow { try start() }
    }

    deinit {
        child?.kill()
        if ownsData { GatewayProcessLeftovers.remove(path: data) }
    }

    // MARK: Where it is

    package var url: String { lock.withLock { address } }

    package var ca: String { authority ?? data + "/certs/ca.pem" }

    /// The process id of the running daemon; 0 when none runs.
    package var pid: Int32 { lock.withLock { child?.pid ?? 0 } }

    package var standardErrorTail: String {
        lock.withLock { child?.standardErrorTail ?? "" }
    }

    /// Resident memory of the running daemon, in bytes; 0 when none runs.
    package var residentBytes: Int { memory("VmRSS:") }

    /// The most memory that it had in use since it started, in bytes; 0 when it does not run.
    package var peakResidentBytes: Int { memory("VmHWM:") }

    private func memory(_ name: String) -> Int {
        let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        return (line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
    }

    // MARK: Life

    /// Starts it; it must not be running. Returns when it accepts connections.
    package func start() throws {
        try launch()
        if waitUntilReady() { return }
        signal(SIGKILL)
        throw TestFailure("the daemon did not get ready:\n\(standardErrorTail)")
    }

    /// Waits until a daemon that was launched accepts connections. Returns `false` when it ended
    /// before (see ``exit``), or was not ready in time.
    package func waitUntilReady(seconds: Double = Patience.seconds) -> Bool {
        lock.withLock {
            let deadline = ContinuousClock.now + .seconds(seconds)
            guard let line = child?.waitForLine(prefix: "ready ", seconds: seconds) else {
                // A process closes its output a moment before it is gone.
                let left = ContinuousClock.now.duration(to: deadline) / .seconds(1)
                _ = child?.waitForExit(seconds: max(0, left))
                return false
            }
            address = String(line.dropFirst("ready ".count))
            return true
        }
    }

    /// Starts it and does not wait: for tests that end it while it starts.
    package func launch() throws {
        var arguments = ["serve", "--data", data, "--listen", "127.0.0.1:0"]
        arguments += ["--admin", admin]
        if let configuration { arguments += ["--config", configuration] }
        let program = try program ?? Self.program()
        if !wrapper.isEmpty { arguments = wrapper + [program] + arguments }
        let launched = try TestProgram(
            wrapper.isEmpty ? program : "/usr/bin/env", arguments, environment: environment)
        lock.withLock { child = launched }
    }

    /// SIGTERM; kills it when it does not end, and then returns `nil`.
    @discardableResult
    package func terminate() -> GatewayProcessExit? { end(SIGTERM) }

    /// Sends a signal and does not wait.
    package func signal(_ number: Int32) {
        lock.withLock { child }?.signal(number)
    }

    /// How the daemon that was started last ended; `nil` while it runs.
    package var exit: GatewayProcessExit? {
        waitForExit(seconds: 0)
    }

    /// Waits for the end of the daemon that was started last; `nil` when it still runs.
    @discardableResult
    package func waitForExit(seconds: Double = Patience.seconds) -> GatewayProcessExit? {
        lock.withLock { child }?.waitForExit(seconds: seconds)
    }

    /// SIGKILL; returns when it is gone.
    package func kill() {
        _ = end(SIGKILL)
    }

    /// Starts it again on the same data directory, on another port; kills it first if it runs.
    package func restart() throws {
        kill()
        try start()
    }

    private func end(_ signal: Int32) -> GatewayProcessExit? {
        guard let child = lock.withLock({ self.child }) else { return nil }
        child.signal(signal)
        let exit = child.waitForExit(seconds: Patience.seconds)
        if exit == nil { child.kill() }
        return exit
    }

    // MARK: Commands

    /// Runs another subcommand, for instance `epoch new --data DIR`, or another program by its
    /// path. Returns standard output, followed by the end of standard error when it failed.
    package static func run(
        _ arguments: [String], program: String? = nil, seconds: Double = Patience.seconds
    ) throws -> (exit: GatewayProcessExit, output: String) {
        let child = try TestProgram(program ?? Self.program(), arguments)
        guard let exit = child.waitForExit(seconds: seconds) else {
            throw TestFailure("`\(arguments.joined(separator: " "))` did not end")
        }
        guard let output = child.waitForOutput() else {
            throw TestFailure("its standard output stayed open")
        }
        return (exit, exit == .status(0) ? output : output + child.standardErrorTail)
    }

    /// Runs a command of `timelinectl`; returns what ``run(_:program:seconds:)`` does.
    package static func timelinectl(
        _ arguments: [String]
    ) throws -> (exit: GatewayProcessExit, output: String) {
        try run(arguments, program: program(named: "timelinectl"))
    }

    /// The path of the daemon: `TIMELINE_GATEWAY_BINARY`, or the one beside this program.
    private static func program() throws -> String {
        try ProcessInfo.processInfo.environment["TIMELINE_GATEWAY_BINARY"]
            ?? program(named: "timeline-gateway")
    }

    /// The path of a program of this package, for ``run(_:program:seconds:)``.
    package static func program(named name: String) throws -> String {
        try TestProgram.path(of: name)
    }

    /// Makes a new directory with a unique name; removed at the latest when this process exits.
    package static func temporaryDirectory() throws -> String {
        let path = NSTemporaryDirectory() + "timeline-gateway-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        GatewayProcessLeftovers.add(path: path)
        return path
    }
}

/// How a process ended.
package enum GatewayProcessExit: Sendable, Equatable {
    case status(Int32)
    case signal(Int32)
}
