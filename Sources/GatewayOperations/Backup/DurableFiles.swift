import Foundation
import GatewaySigning
import WidgetModel

/// File operations that are durable, and checksummed, when the call returns.
enum DurableFiles {
    private static let pieceBytes = 1 << 20

    /// A file as listed in a directory; unequal after the file was written.
    struct Listed: Equatable {
        let name: String
        let mode: UInt32
        let bytes: Int64
        private let inode: UInt64
        private let modified: [Int]

        init?(_ directory: String, _ name: String) {
            var status = stat()
            guard lstat(directory + "/" + name, &status) == 0, status.st_mode & S_IFMT == S_IFREG
            else { return nil }
            self.name = name
            mode = status.st_mode & 0o777
            bytes = Int64(status.st_size)
            inode = UInt64(status.st_ino)
            modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
        }
    }

    /// The regular files of a directory, by name; none if the directory is missing.
    static func list(_ directory: String) -> [Listed] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.sorted().compactMap { Listed(directory, $0) }
    }

    /// Copies a file to a path at which none exists. Returns the SHA-256 of the copied bytes, and
    /// their number. Throws ``Faults`` that name the file.
    static func copy(
        _ source: String, to target: String, mode: UInt32, named name: String
    ) throws -> (sha256: String, bytes: Int64) {
        let input = open(source, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard input >= 0 else { throw failure(name, "be read") }
        defer { close(input) }
        let output = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw failure(name, "be written") }
        defer { close(output) }
        var bytes: Int64 = 0
        let digest = try digest(input, named: name) { piece in
            guard writeAll(piece, to: output) else { throw failure(name, "be written") }
            bytes += Int64(piece.count)
        }
        guard fchmod(output, mode) == 0, fsync(output) == 0 else {
            throw failure(name, "be written")
        }
        return (digest, bytes)
    }

    /// Makes a completely written file durable. Returns its SHA-256.
    static func seal(_ path: String, named name: String) throws -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { throw failure(name, "be read") }
        defer { close(file) }
        guard fsync(file) == 0 else { throw failure(name, "be written") }
        return try digest(file, named: name) { _ in }
    }

    static func seal(directory path: String) throws {
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw failure(path, "be opened") }
        defer { close(directory) }
        guard fsync(directory) == 0 else { throw failure(path, "be made durable") }
    }

    /// Creates a directory with mode 0700 at an unused path.
    static func makeDirectory(_ path: String) throws {
        guard mkdir(path, 0o700) == 0 else { throw failure(path, "be made") }
    }

    /// Renames a file or directory; an existing target must be an empty directory.
    static func move(_ path: String, to target: String) throws {
        guard rename(path, target) == 0 else { throw failure(target, "be made") }
    }

    private static func digest(
        _ file: Int32, named name: String, _ take: (_ piece: [UInt8]) throws -> Void
    ) throws -> String {
        var buffer = [UInt8](repeating: 0, count: pieceBytes)
        let digest = try SHA256Digest {
            var count = read(file, &buffer, buffer.count)
            while count < 0, errno == EINTR { count = read(file, &buffer, buffer.count) }
            guard count >= 0 else { throw failure(name, "be read") }
            guard count > 0 else { return nil }
            let piece = Array(buffer[..<count])
            try take(piece)
            return piece
        }
        return digest.hexadecimal
    }

    private static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                // Sound: the pointer is used only within the closure that provides it.
                let count = write(
                    file, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }
    }

    private static func failure(_ name: String, _ what: String) -> Faults {
        Faults(name, "cannot \(what): \(String(cString: strerror(errno)))")
    }
}
