import Foundation

extension Diagnostics {
    /// The process that holds a flock(2) lock on a file; `nil` if none is visible.
    static func holder(of path: String) -> Int32? {
        var status = stat()
        guard stat(path, &status) == 0,
            let locks = try? String(contentsOfFile: "/proc/locks", encoding: .utf8)
        else { return nil }
        for line in locks.split(separator: "\n") {
            // 1: FLOCK  ADVISORY  WRITE 2719 fe:01:1835010 0 EOF
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] == "FLOCK", let pid = Int32(words[4]),
                words[5].split(separator: ":").last.flatMap({ UInt64($0) }) == UInt64(status.st_ino)
            else { continue }
            return pid
        }
        return nil
    }

    /// The permission bits of a file; `nil` if there is none.
    static func mode(_ path: String) -> UInt32? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    static func megabytes(_ bytes: Double) -> String {
        let megabytes = Int(min(bytes / 1e6, 1e15))
        return megabytes >= 10_000 ? "\(megabytes / 1_000) GB" : "\(megabytes) MB"
    }
}

extension DataDirectory {
    /// The files that contain keys or registrations.
    var privateFiles: [String] {
        var files = [Self.databaseName, Self.databaseName + "-wal", Self.databaseName + "-shm"]
        for directory in ["keys", "issuer", "webhooks"] {
            files += DurableFiles.list(path + "/" + directory).map { directory + "/" + $0.name }
        }
        files += DurableFiles.list(path + "/certs").map(\.name).filter { $0.hasSuffix(".key") }
            .map { "certs/" + $0 }
        return files.filter { Self.exists(path + "/" + $0) }
    }
}
