import Foundation

/// The process's limit on open files and sockets.
enum OpenFiles {
    /// Raises the limit to what the system allows.
    ///
    /// - Returns: The limit.
    static func raiseLimit() -> Int {
        var limit = rlimit()
        // The libraries' own type differs from the constant's on Linux.
        let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(files, &limit) == 0 else { return 1_024 }
        let before = limit
        limit.rlim_cur = limit.rlim_max
        if setrlimit(files, &limit) != 0 { limit = before }
        return Int(clamping: limit.rlim_cur)
    }
}
