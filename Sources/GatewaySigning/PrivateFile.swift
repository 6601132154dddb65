import WidgetModel

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Small files that only their owner may read; replaced as a whole and durable before the call
/// returns.
enum PrivateFile {
    /// Reads a file of at most `bytesMax` bytes.
    static func read(_ path: String, bytesMax: Int) throws(SigningError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("opened", path) }
        defer { _ = close(descriptor) }
        var content = [UInt8](repeating: 0, count: bytesMax + 1)
        var length = 0
        while length < content.count {
            let count = content.withUnsafeMutableBytes {
                Self.readSome(descriptor, $0[length...])
            }
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR { continue }
                throw failure("read", path)
            }
            length += count
        }
        guard length <= bytesMax else {
            throw SigningError(.limitExceeded, "\(path) is longer than \(bytesMax) bytes")
        }
        return Array(content[..<length])
    }

    /// Returns whether there is a file at `path`.
    static func exists(_ path: String) -> Bool {
        access(path, F_OK) == 0
    }

    /// Returns the names in a directory that end in `suffix`, the oldest files first.
    static func namesByAge(
        in directory: String, suffix: String
    ) throws(SigningError) -> [String] {
        guard let entries = opendir(directory) else { throw failure("opened", directory) }
        defer { closedir(entries) }
        var found: [(modified: timespec, name: String)] = []
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                // Sound: the name ends in a zero within its field, and is copied.
                $0.withMemoryRebound(
                    to: CChar.self, capacity: MemoryLayout.size(ofValue: $0.pointee)
                ) {
                    String(cString: $0)
                }
            }
            var status = stat()
            guard name.hasSuffix(suffix), stat("\(directory)/\(name)", &status) == 0 else {
                continue
            }
            #if canImport(Darwin)
                found.append((status.st_mtimespec, name))
            #else
                found.append((status.st_mtim, name))
            #endif
        }
        return found.sorted {
            ($0.modified.tv_sec, $0.modified.tv_nsec, $0.name)
                < ($1.modified.tv_sec, $1.modified.tv_nsec, $1.name)
        }.map(\.name)
    }

    /// Creates a directory with mode 0700 unless it exists.
    static func makeDirectory(_ path: String) throws(SigningError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure("made", path) }
    }

    /// Replaces the file at `path` with `content`: after a crash, and for concurrent readers, it is
    /// either the old file or the new one.
    static func replace(_ path: String, with content: [UInt8]) throws(SigningError) {
        let temporary = try writeTemporary(beside: path, content)
        guard rename(temporary, path) == 0 else {
            let error = failure("replaced", path)
            unlink(temporary)
            throw error
        }
        try syncDirectory(of: path)
    }

    /// Removes a file; succeeds if it does not exist.
    static func remove(_ path: String) throws(SigningError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw failure("removed", path) }
        try syncDirectory(of: path)
    }

    private static func writeTemporary(
        beside path: String, _ content: [UInt8]
    ) throws(SigningError) -> String {
        let suffix = Base64.url.string(try secureRandom(count: 9))
        let temporary = "\(path).\(suffix).tmp"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("created", temporary) }
        let isWritten = writeAll(descriptor, content) && fsync(descriptor) == 0
        let reason = errno
        let isClosed = close(descriptor) == 0
        guard isWritten, isClosed else {
            if !isWritten { errno = reason }
            let error = failure("written", temporary)
            unlink(temporary)
            throw error
        }
        return temporary
    }

    private static func writeAll(_ descriptor: Int32, _ content: [UInt8]) -> Bool {
        content.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = write(
                    descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress,
                    rest.count)
                if count < 0 {
                    if errno == EINTR { continue }
                    return false
                }
                rest = rest.dropFirst(count)
            }
            return true
        }
    }

    private static func readSome(
        _ descriptor: Int32, _ space: Slice<UnsafeMutableRawBufferPointer>
    ) -> Int {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: space)
        #if canImport(Glibc)
            return Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        #elseif canImport(Musl)
            return Musl.read(descriptor, buffer.baseAddress, buffer.count)
        #else
            return Darwin.read(descriptor, buffer.baseAddress, buffer.count)
        #endif
    }

    /// Runs `body` while holding an exclusive lock on a directory, across threads and processes;
    /// waits until it is available.
    static func withLock<Result>(
        on directory: String, _ body: () throws(SigningError) -> Result
    ) throws(SigningError) -> Result {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("opened", directory) }
        // Closing the descriptor releases the lock, as does the end of the process.
        defer { _ = close(descriptor) }
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw failure("locked", directory) }
        }
        return try body()
    }

    /// Makes the directory durable, without which a new name is not.
    private static func syncDirectory(of path: String) throws(SigningError) {
        let directory = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("opened", directory) }
        defer { _ = close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("made durable", directory) }
    }

    private static func failure(_ verb: String, _ path: String) -> SigningError {
        let reason = String(cString: strerror(errno))
        return SigningError(.fileFailed, "\(path) could not be \(verb): \(reason)")
    }
}
