import Foundation

/// The resource usage of the process, from the kernel (proc(5)).
package struct ProcessStats {
    /// CPU time used, in seconds.
    package var cpuSeconds = 0.0
    /// Memory in use, in bytes.
    package var residentBytes = 0.0
    /// Memory mapped, in bytes.
    package var virtualBytes = 0.0
    /// The start time, in seconds since 1970.
    package var startSeconds = 0.0
    package var openFiles = 0.0
    /// The limit on open file descriptors.
    package var openFilesMax = 0.0

    /// Reads the values; those that cannot be read are 0.
    package init() {
        let stat = Self.text("/proc/self/stat")
        // The name in parentheses may contain anything, so fields are counted after it: the first
        // is number three in the manual page.
        let fields = stat.split(separator: ")").last.map { $0.split(separator: " ") } ?? []
        func field(_ number: Int) -> Double {
            fields.indices.contains(number - 3) ? Double(fields[number - 3]) ?? 0 : 0
        }
        let ticks = Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
        cpuSeconds = (field(14) + field(15)) / ticks
        virtualBytes = field(23)
        residentBytes = field(24) * Double(max(1, sysconf(Int32(_SC_PAGESIZE))))
        let boot = Self.text("/proc/stat").split(separator: "\n").first { $0.hasPrefix("btime ") }
        startSeconds =
            (boot?.split(separator: " ").last.flatMap { Double($0) } ?? 0)
            + field(22) / ticks
        let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        openFiles = Double(files?.count ?? 0)
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            openFilesMax = Double(limit.rlim_cur)
        }
    }

    private static func text(_ path: String) -> String {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
