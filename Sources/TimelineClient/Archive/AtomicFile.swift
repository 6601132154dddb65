import Foundation

/// A small file that is replaced as a whole: after a crash at any point it holds what was written
/// last or what was written before that, never a mixture.
enum AtomicFile {
    /// Why a file was not written: what failed, and the system's number for why.
    struct Failure: Error {
        let what: String
        let code: Int32
    }

    /// What the file holds; `nil` when it is not there, cannot be read, or is larger than `bytesMax`.
    static func read(_ path: String, bytesMax: Int) -> [UInt8]? {
        guard let handle = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? handle.close() }
        guard let data = try? handle.read(upToCount: bytesMax + 1), data.count <= bytesMax else {
            return nil
        }
        return [UInt8](data)
    }

    /// Replaces the file; its content is on disk when this returns. The name with `.new` behind it
    /// is used too.
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

    /// The name is only as durable as its directory. A file system that cannot sync one makes the
    /// last write less durable, not wrong, so this has no error.
    private static func syncDirectory(of path: String) {
        let directory = (path as NSString).deletingLastPathComponent
        let descriptor = open(directory.isEmpty ? "." : directory, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        _ = close(descriptor)
    }
}
