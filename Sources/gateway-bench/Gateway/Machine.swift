import CLinux
import Foundation
import GatewayTestSupport

/// Limits, cores and child processes of this process.
enum Machine {
    /// Descriptors needed beside one for each stream.
    static let descriptorsReserve = 200

    /// Bytes of a mask of cores: up to 1,024 of them.
    private static let coreMaskBytes = 128

    /// The cores this thread may run on, ascending.
    static func allowedCores() -> [Int] {
        var mask = [UInt8](repeating: 0, count: coreMaskBytes)
        guard gateway_get_affinity(&mask, UInt(mask.count)) > 0 else { return [0] }
        return (0..<mask.count * 8).filter { mask[$0 / 8] & (1 << UInt8($0 % 8)) != 0 }
    }

    /// Lets this thread, and what it starts from now on, run on `cores` only. Throws
    /// ``BenchFailure`` when the machine has none of them.
    static func pin(to cores: [Int]) throws {
        var mask = [UInt8](repeating: 0, count: coreMaskBytes)
        for core in cores where core < mask.count * 8 { mask[core / 8] |= 1 << UInt8(core % 8) }
        guard gateway_set_affinity(mask, UInt(mask.count)) == 0 else {
            let reason = String(cString: strerror(errno))
            throw BenchFailure("cannot use the cores \(cores): \(reason)")
        }
    }

    static var ownProgram: String {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
    }

    /// Returns arguments for `/usr/bin/env` that run a command on these cores alone, in the same
    /// process and in a session of its own: Ctrl-C is for this program, which then ends the other.
    static func command(_ command: [String], on cores: [Int]?) -> [String] {
        let list = cores?.map(String.init).joined(separator: ",")
        return ["setsid"] + (list.map { ["taskset", "-c", $0] } ?? []) + command
    }

    /// Runs a program to its end and returns its standard output. It may use only these `cores`;
    /// `nil` for any. Throws ``Interruption``, or ``BenchFailure`` with the end of its standard
    /// error.
    static func run(_ command: [String], on cores: [Int]? = nil, seconds: Double) throws -> String {
        let name = command.joined(separator: " ")
        let child = try TestProgram("/usr/bin/env", Self.command(command, on: cores))
        let end = monotonicNanoseconds() + Int64(seconds * 1e9)
        while monotonicNanoseconds() < end {
            try Interruption.check()
            guard let exit = child.waitForExit(seconds: 0.1) else { continue }
            guard exit == .status(0), let output = child.waitForOutput(seconds: 10) else {
                throw BenchFailure("\(name): \(exit) \(child.standardErrorTail)")
            }
            return output
        }
        throw BenchFailure("\(name) did not end within \(Int(seconds)) s")
    }

    /// Returns the kernel's release and the cores, for the report.
    static func describe() -> [(String, String)] {
        var name = utsname()
        uname(&name)
        let release = withUnsafeBytes(of: &name.release) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return [
            ("kernel", release), ("cores", allowedCores().map(String.init).joined(separator: ",")),
        ]
    }
}
