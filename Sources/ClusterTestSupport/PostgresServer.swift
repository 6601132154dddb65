import Foundation
import GatewayCluster
import GatewayTestSupport
import Synchronization

/// A PostgreSQL server of its own in a temporary directory, reached by a Unix socket. It is killed,
/// and its directory removed, when the value goes.
package final class PostgresServer: Sendable {
    /// The directory of the newest server's programs, as Debian installs them; empty without one.
    private static let programs: String = {
        let root = "/usr/lib/postgresql/"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        let newest = versions.compactMap { Int($0) }.max()
        return newest.map { "\(root)\($0)/bin/" } ?? ""
    }()

    /// Whether the server's programs are installed. Tests without them are left out, but never in
    /// CI: a check that cannot run there fails.
    package static var isInstalled: Bool {
        ProcessInfo.processInfo.environment["CI"] == "true"
            || FileManager.default.isExecutableFile(atPath: programs + "postgres")
    }

    /// A server for all tests that leave it running as it is; each has a database of its own.
    package static let shared = Result { try PostgresServer() }

    /// The directory of data and socket.
    package let directory: String
    package let port: String
    private let databaseCount = Mutex(0)
    private let settings: [String]
    private let process = TestHTTPMonitor<TestProgram?>(nil)

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - settings: Further settings, such as `ssl`.
    ///   - port: The port in the name of the socket, and of TCP where `settings` listen.
    ///   - isOnDisk: Whether its files are on a disk, as measurements need, and never in memory.
    ///   - prepare: Called with the directory before the start.
    package init(
        _ settings: [String: String] = [:], port: UInt16 = 5432, isOnDisk: Bool = false,
        prepare: (String) throws -> Void = { _ in }
    ) throws {
        directory = try Self.copy(of: try Self.template.get(), isOnDisk: isOnDisk)
        self.port = "\(port)"
        self.settings = settings.sorted { $0.key < $1.key }.flatMap {
            ["-c", "\($0.key)=\($0.value)"]
        }
        try prepare(directory)
        if geteuid() == 0 { try Self.command("/bin/chown", ["-R", "postgres", directory]) }
        try start()
    }

    /// Starts a standby of `primary`, from a base backup.
    ///
    /// - Parameter name: The name that the primary knows it by.
    package init(standbyOf primary: PostgresServer, name: String) throws {
        directory = try Self.emptyDirectory()
        settings = []
        port = primary.port
        try copy(primary, name: name)
        try start()
    }

    /// Becomes a standby of another server, from a new copy; what it held is removed.
    func follow(_ primary: PostgresServer, name: String) throws {
        try? FileManager.default.removeItem(atPath: directory + "/data")
        try copy(primary, name: name)
        try start()
    }

    private func copy(_ primary: PostgresServer, name: String) throws {
        try Self.run(
            "pg_basebackup",
            [
                "-h", primary.directory, "-p", port, "-U", "postgres", "-D", directory + "/data",
                "-c", "fast", "-X", "stream", "--no-sync", "-R",
                "-d", "application_name=\(name)",
            ])
    }

    deinit {
        process.update { $0?.kill() }
        Self.remove(directory)
    }

    package var host: String { directory }

    package func address(
        user: String = "postgres", database: String = "postgres"
    ) throws -> PostgresAddress {
        try PostgresAddress("host=\(host) port=\(port) user=\(user) dbname=\(database)")
    }

    /// The address of this server, also where it is a standby.
    private func readOnlyAddress() throws -> PostgresAddress {
        try PostgresAddress(
            "host=\(host) port=\(port) user=postgres dbname=postgres", isReadOnlyAllowed: true)
    }

    /// Connects as the superuser.
    package func administration(database: String = "postgres") throws -> PostgresAdministration {
        let connection = try Self.connect(try address(database: database))
        try connection.execute("SET lock_timeout = \(Patience.milliseconds)")
        return connection
    }

    /// Connects to a server that runs; tries again where a slow one has not answered within the
    /// time that a node waits.
    static func connect(_ address: PostgresAddress) throws -> PostgresAdministration {
        let deadline = ContinuousClock.now + Patience.duration
        while true {
            do {
                return try PostgresAdministration(address)
            } catch {
                guard "\(error)".contains("timeout expired"), ContinuousClock.now < deadline
                else { throw error }
            }
        }
    }

    package func createDatabase() throws -> String {
        let number = databaseCount.withLock { count in
            count += 1
            return count
        }
        try execute("CREATE DATABASE test\(number)")
        return "test\(number)"
    }

    /// Runs statements as the superuser on a connection of their own.
    package func execute(_ sql: String) throws { try administration().execute(sql) }

    // MARK: Life

    /// Starts it; returns when it answers queries.
    package func start() throws {
        let arguments =
            [
                "-D", directory + "/data", "-k", directory, "-p", port, "-c",
                "listen_addresses=", "-c", "shared_buffers=16MB", "-c",
                "dynamic_shared_memory_type=mmap", "-c", "max_connections=40",
                "-c", "wal_receiver_timeout=5s", "-c",
                "wal_retrieve_retry_interval=100ms",
            ] + settings
        let started = try Self.program("postgres", arguments)
        process.update { $0 = started }
        let deadline = ContinuousClock.now + Patience.duration
        while ContinuousClock.now < deadline, started.waitForExit(seconds: 0) == nil {
            if (try? PostgresAdministration(readOnlyAddress())) != nil { return }
            _ = started.waitForExit(seconds: 0.02)
        }
        throw TestFailure("postgres does not answer:\n\(started.standardErrorTail)")
    }

    package var isRunning: Bool { process.update { $0?.waitForExit(seconds: 0) == nil } }

    /// SIGKILL to the server, whose other processes end with it.
    package func kill() {
        let postmaster = process.update { $0 }
        postmaster?.kill()
        Self.removeSharedMemory(of: directory)
    }

    /// SIGKILL to every process of the server at once, as when its machine loses power; returns
    /// when none is left, so that it can be started again.
    package func crash() throws {
        // No process is added while they are counted.
        signalAll(SIGSTOP)
        let processes = processes
        signalAll(SIGKILL)
        try blockUntil("every process of the server ends") {
            !processes.contains(where: Self.isAlive)
        }
        Self.removeSharedMemory(of: directory)
    }

    private static func isAlive(_ process: Int32) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return !status.isEmpty && !status.contains(") Z ")
    }

    /// Stops every process of the server until ``resume()``: it is silent, as behind a black hole.
    package func pause() { signalAll(SIGSTOP) }

    /// Lets a paused server go on.
    package func resume() { signalAll(SIGCONT) }

    private func signalAll(_ number: Int32) {
        for process in processes { Glibc.kill(process, number) }
    }

    /// The postmaster and its children.
    private var processes: [Int32] {
        guard let pid = process.update({ $0?.pid }) else { return [] }
        let children =
            (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8))
            ?? ""
        return [pid] + children.split(separator: " ").compactMap { Int32($0) }
    }

    /// Makes a standby the primary; returns when it takes writes.
    package func promote() throws {
        let isPromoted = try Self.connect(readOnlyAddress()).rows(
            "SELECT pg_promote(true, \(Int(Patience.seconds)))")
        guard try isPromoted.first?.boolean(0) == true else {
            throw TestFailure("the standby was not promoted")
        }
    }

    /// Sets a setting of the running server.
    ///
    /// - Parameter whileFollowing: Whether it may be a standby.
    package func set(_ name: String, _ value: String, whileFollowing: Bool = false) throws {
        let connection = try Self.connect(whileFollowing ? readOnlyAddress() : address())
        try connection.execute("ALTER SYSTEM SET \(name) = '\(value)'")
        try connection.execute("SELECT pg_reload_conf()")
    }

    // MARK: Making one

    /// A directory after initdb, which takes a second; copied for every server.
    private static let template = Result { () throws -> String in
        let directory = try emptyDirectory()
        try run(
            "initdb",
            [
                "-D", directory + "/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N",
                "--wal-segsize=1",
            ])
        return directory
    }

    /// The directories to remove when this process ends before every value is released.
    private static let leftovers = Mutex<Set<String>>([])

    /// Creates a directory in memory, where there is room and it may be: a server syncs a thousand
    /// files when it starts from a copy, which takes seconds on a busy disk.
    private static func emptyDirectory(isOnDisk: Bool = false) throws -> String {
        let memory = "/dev/shm"
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: memory)
        let free = (attributes?[.systemFreeSize] as? NSNumber)?.int64Value ?? 0
        let parent = free > 1 << 30 && !isOnDisk ? memory : NSTemporaryDirectory()
        // Short: the path of a socket has at most 107 bytes.
        let directory = parent + "/timeline-gateway-test-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        let isFirst = leftovers.withLock { leftovers in
            defer { leftovers.insert(directory) }
            return leftovers.isEmpty
        }
        if isFirst { ExitActions.add { PostgresServer.removeLeftovers() } }
        if geteuid() == 0 { try command("/bin/chown", ["postgres", directory]) }
        return directory
    }

    private static func removeLeftovers() {
        for directory in leftovers.withLock({ $0 }) { remove(directory) }
    }

    private static func remove(_ directory: String) {
        removeSharedMemory(of: directory)
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Removes the segment that shows a server that its data directory is in use, which stays when
    /// the server is killed.
    private static func removeSharedMemory(of directory: String) {
        let path = directory + "/data/postmaster.pid"
        let lines = ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(
            separator: "\n", omittingEmptySubsequences: false)
        // The seventh line has key and number of the segment.
        guard lines.count > 6,
            let number = lines[6].split(separator: " ").last.flatMap({ Int32($0) })
        else { return }
        shmctl(number, IPC_RMID, nil)
    }

    private static func copy(of template: String, isOnDisk: Bool) throws -> String {
        let directory = try emptyDirectory(isOnDisk: isOnDisk)
        try command("/bin/cp", ["-a", template + "/data", directory + "/data"])
        return directory
    }

    private static func program(_ name: String, _ arguments: [String]) throws -> TestProgram {
        // The server refuses to run as root. setpriv becomes the program, which keeps its number.
        geteuid() == 0
            ? try TestProgram(
                "/usr/bin/setpriv",
                ["--reuid=postgres", "--regid=postgres", "--clear-groups", programs + name]
                    + arguments)
            : try TestProgram(programs + name, arguments)
    }

    private static func run(_ name: String, _ arguments: [String]) throws {
        try check(try program(name, arguments), name)
    }

    /// Runs a program of the system to its end.
    package static func command(_ path: String, _ arguments: [String]) throws {
        try check(try TestProgram(path, arguments), path)
    }

    private static func check(_ program: TestProgram, _ name: String) throws {
        guard program.waitForExit(seconds: Patience.seconds) == .status(0) else {
            throw TestFailure("\(name) failed:\n\(program.standardErrorTail)")
        }
    }
}
