import Foundation
import GatewayEngine

/// Tells when files became others, by what the kernel says of them: mounted secrets change by a link
/// that names another folder, which no watch of the file itself would notice.
package struct FileWatch {
    /// What tells two states of a file apart.
    package struct Print: Equatable {
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let seconds: Int
        let nanoseconds: Int

        /// The file at `path`, links followed; `nil` where there is none.
        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
            size = Int64(status.st_size)
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    private var known: [String: Print?]?

    package init(known: [String: Print?]? = nil) {
        self.known = known
    }

    /// Looks at the files; whether any became another since the last look, at which it may not have
    /// been watched.
    package mutating func look(_ paths: some Sequence<String>) -> Bool {
        var seen: [String: Print?] = [:]
        for path in paths { seen[path] = .some(Print(path)) }
        defer { known = seen }
        guard let known else { return false }
        return seen.contains { path, print in known[path].map { $0 != print } ?? false }
    }
}
