import Foundation

/// A small file that is replaced as a whole: after a crash at any point it holds either the new or
/// the previous content, never a mixture.
enum AtomicFile {
    /// The reason why a file was not written: the failed step, and `errno`.
    struct Failure: Error {
        let what: String
        let code: Int32
    }

    /// Returns the file's content; `nil` when it does not exist, cannot be read, or is larger than
    /// `bytesMax`.
    static func read(_ path: String, bytesMax: Int) -> [UInt8]? {
        guard let handle = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? handle.close() }
        guard let data = try? handle.read(upToCount: bytesMax + 1), data.count <= bytesMax else {
            return nil
        }
        return [UInt8](data)
    }

    /// Replaces the file. Its content is on disk when this returns. Also uses the path with `.new`
    /// appended.
    static func replace(_ path: String, with bytes: [UInt8]) throws(Failure) {
        let temporary = path + ".new"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure(what: "created", code: errno) }
        do throws(Failure) {
            try write(bytes, to: descriptor)
        } catch {
            _ = close(descriptor)
            _ = unlink(temporary)
            throw error
        }
        guard close(descriptor) == 0 else { throw Failure(what: "closed", code: errno) }
        guard rename(temporary, path) == 0 else { throw Failure(what: "replaced", code: errno) }
        syncDirectory(of: path)
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            // Sound: the buffer is read only during the call.
            let written = rest.withUnsafeBytes { buffer in
                Foundation.write(descriptor, buffer.baseAddress, buffer.count)
            }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw Failure(what: "written", code: errno) }
            rest = rest.dropFirst(written)
        }
        guard fsync(descriptor) == 0 else { throw Failure(what: "synced", code: errno) }
    }

    /// Makes the new name durable. Where the file system cannot sync a directory, the last write is
    /// less durable but not wrong, so this reports no error.
    private static func syncDirectory(of path: String) {
        let directory = (path as NSString).deletingLastPathComponent
        let descriptor = open(directory.isEmpty ? "." : directory, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        _ = close(descriptor)
    }
}
