import Foundation

/// Detects replaced or modified files by their stat data. Mounted secrets change through a link to
/// another folder, which a watch on the file itself would not notice.
package struct FileWatch {
    /// The stat data that distinguishes two states of a file.
    package struct Print: Equatable {
        /// The file, its size, and the time of its last change.
        private let data: [Int]

        /// Reads the stat data at `path`, following links; `nil` if there is no file.
        package init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            data = [
                Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino),
                Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            ]
        }
    }

    private var known: [String: Print?] = [:]

    package init() {}

    /// Checks the files. Returns whether any has changed since the last check, or, if it was not in
    /// that check, since `read`.
    ///
    /// - Parameter read: The state of files just before they were last read. A file that is neither
    ///   here nor in the last check does not count.
    package mutating func look(
        _ paths: some Sequence<String>, read: [String: Print?] = [:]
    ) -> Bool {
        var seen: [String: Print?] = [:]
        for path in paths { seen[path] = .some(Print(path)) }
        let before = read.merging(known) { _, checked in checked }
        known = seen
        return seen.contains { path, print in before[path].map { $0 != print } ?? false }
    }
}
