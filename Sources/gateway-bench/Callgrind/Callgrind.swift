import Foundation

/// Counts a program's instructions with callgrind: reproducible under any load. Its owner calls
/// ``end()``, on errors too.
struct Callgrind {
    /// For its files; removed by ``end()``.
    let directory: String
    private let function: String
    private let countsAtStart: Bool

    private static let timeoutSeconds = 600.0

    /// Makes the directory; starts nothing.
    ///
    /// - Parameters:
    ///   - function: The symbol of the only function within which instructions are counted; `*`
    ///     stands for any part of it.
    ///   - countsAtStart: Whether all of a program's life is counted, not only ``count(of:_:)``. A
    ///     program is far faster while nothing is counted.
    init(within function: String, countsAtStart: Bool) throws {
        (self.function, self.countsAtStart) = (function, countsAtStart)
        directory = NSTemporaryDirectory() + "gateway-bench-callgrind-" + UUID().uuidString
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
    }

    /// Removes what it wrote.
    func end() { try? FileManager.default.removeItem(atPath: directory) }

    /// The command that a program and its arguments are appended to.
    var launcher: [String] {
        [
            // Dictionaries lie alike in memory in every run.
            "env", "SWIFT_DETERMINISTIC_HASHING=1", "valgrind", "--quiet", "--tool=callgrind",
            "--callgrind-out-file=\(file)", "--vgdb-poll=500",
            "--vgdb-prefix=\(pipes)", "--toggle-collect=\(function)",
            "--instr-atstart=\(countsAtStart ? "yes" : "no")",
        ] + CallgrindProfile.options
    }

    private var file: String { directory + "/profile" }
    private var pipes: String { directory + "/vgdb" }

    /// Copies a program without its debugging information, because valgrind cannot read Swift's.
    /// Returns the copy's path.
    func copy(_ program: String) throws -> String {
        let original = URL(fileURLWithPath: program).resolvingSymlinksInPath()
        let copy = directory + "/" + original.lastPathComponent
        try run(["objcopy", "--strip-debug", original.path, copy])
        return copy
    }

    /// Runs a program to its end and counts all of its life. It may use only these `cores`; `nil`
    /// for any.
    func count(_ program: String, _ arguments: [String], cores: [Int]?) throws -> CallgrindProfile {
        try? FileManager.default.removeItem(atPath: file)
        try run(launcher + [program] + arguments, cores: cores)
        return try read(file)
    }

    /// Counts what a process started by ``launcher`` does during `body`, before and after which it
    /// has to rest.
    func count(of process: pid_t, _ body: () throws -> Void) throws -> CallgrindProfile {
        try control(process, "instrumentation", "on")
        try body()
        let known = dumps
        try control(process, "dump")
        try control(process, "instrumentation", "off")
        guard let dump = dumps.subtracting(known).first else {
            throw BenchFailure("callgrind wrote no profile")
        }
        return try read(dump)
    }

    /// The profiles written while the program runs, which callgrind numbers.
    private var dumps: Set<String> {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return Set(names.map { directory + "/" + $0 }.filter { $0.hasPrefix(file + ".") })
    }

    private func read(_ path: String) throws -> CallgrindProfile {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        do {
            return try CallgrindProfile(parsing: text)
        } catch {
            throw BenchFailure("cannot read callgrind's profile: \(error)")
        }
    }

    private func control(_ process: pid_t, _ command: String...) throws {
        // By default vgdb wakes an idle process with ptrace. On a machine that stands still for 3 s
        // at that moment, it then leaves the process stopped for ever, and reports success. Without,
        // the process looks for commands itself, as often as `vgdb-poll` says.
        try run(
            ["vgdb", "--pid=\(process)", "--vgdb-prefix=\(pipes)", "--max-invoke-ms=0"] + command)
    }

    private func run(_ command: [String], cores: [Int]? = nil) throws {
        _ = try Machine.run(command, on: cores, seconds: Self.timeoutSeconds)
    }
}
