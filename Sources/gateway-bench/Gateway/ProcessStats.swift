import Foundation

/// CPU time and memory of processes, from /proc.
enum ProcessStats {
    /// CPU time of all threads of a process that run now, in nanoseconds. Time in the kernel on their
    /// behalf counts, and so does the loopback's receiving side, which runs in the sender's.
    static func cpuNanoseconds(_ pid: pid_t) -> Int64 {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task"))
        return (threads ?? []).reduce(0) { sum, thread in
            sum + (numbers("/proc/\(pid)/task/\(thread)/schedstat").first ?? 0)
        }
    }

    /// Resident memory, bytes.
    static func residentBytes(_ pid: pid_t) -> Int64 {
        (numbers("/proc/\(pid)/statm").dropFirst().first ?? 0)
            * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    static func ownCPUNanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private static func numbers(_ path: String) -> [Int64] {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return text.split(whereSeparator: \.isWhitespace).compactMap { Int64($0) }
    }
}
