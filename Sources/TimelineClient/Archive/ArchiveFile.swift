import Foundation
import WidgetModel

/// A client's archive as one small file that is replaced as a whole: after a crash at any point it
/// holds what was saved last or what was saved before that, never a mixture.
public struct ArchiveFile: Sendable {
    /// Largest archive that is read, bytes: 200 timelines of the largest size that is kept, with
    /// as much again for their quoting.
    static let bytesMax = 128 * 1024 * 1024

    /// Why an archive was not written.
    public struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        /// What failed, with the system's reason.
        public let description: String

        init(_ what: String, _ code: Int32) {
            description = "the archive could not be \(what): \(String(cString: strerror(code)))"
        }
    }

    /// Where it is.
    public let path: String

    /// An archive; only its owner can read the file, for a registration may hold push tokens.
    ///
    /// - Parameter path: A file in a directory that exists. The name with `.new` behind it is used
    ///   too. Two clients, or two processes, must not share one.
    public init(path: String) {
        self.path = path
    }

    /// What was saved last for this owner; `nil` when there is nothing, or nothing that can be
    /// read.
    package func load(owner: String) -> ArchiveDocument? {
        Self.read(path).flatMap { ArchiveDocument($0, owner: owner) }
    }

    /// A document; `nil` when there is none.
    static func read(_ path: String) -> JSONValue? {
        guard let handle = FileHandle(forReadingAtPath: path) else { return nil }
        defer { try? handle.close() }
        guard let data = try? handle.read(upToCount: bytesMax + 1), data.count <= bytesMax else {
            return nil
        }
        return try? JSONValue(parsing: [UInt8](data))
    }

    /// Replaces the archive; it is on disk when this returns.
    ///
    /// - Throws: ``Failure``; the archive is then the one saved before.
    package func save(_ document: ArchiveDocument) throws(Failure) {
        try Self.replace(path, with: document.json.serialized)
    }

    /// Replaces a file as a whole; it is on disk when this returns.
    static func replace(_ path: String, with bytes: [UInt8]) throws(Failure) {
        let temporary = path + ".new"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure("created", errno) }
        do throws(Failure) {
            try Self.write(bytes, to: descriptor)
        } catch {
            _ = close(descriptor)
            _ = unlink(temporary)
            throw error
        }
        guard close(descriptor) == 0 else { throw Failure("closed", errno) }
        guard rename(temporary, path) == 0 else { throw Failure("replaced", errno) }
        Self.syncDirectory(of: path)
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            // Sound: the buffer is read only during the call.
            let written = rest.withUnsafeBytes { buffer in
                Foundation.write(descriptor, buffer.baseAddress, buffer.count)
            }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw Failure("written", errno) }
            rest = rest.dropFirst(written)
        }
        guard fsync(descriptor) == 0 else { throw Failure("synced", errno) }
    }

    /// The name is only as durable as its directory. A file system that cannot sync one makes the
    /// last save less durable, not wrong, so this has no error.
    private static func syncDirectory(of path: String) {
        let directory = (path as NSString).deletingLastPathComponent
        let descriptor = open(directory.isEmpty ? "." : directory, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        _ = close(descriptor)
    }
}
