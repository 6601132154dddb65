import CLinux
import Foundation
import GRDB
import Synchronization

#if canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The reason to suspect that the log lost its end.
package enum SuspectedLoss: Sendable, Equatable {
    /// The directory was copied since the last start: the copy may be an older one.
    case copied
    /// The log once ended at `marked` or later, and now ends at `head`.
    case shortened(marked: UInt64, head: UInt64)
}

/// A small file beside the database that lets a start detect a data directory that was restored
/// from a copy, and a log that lost its end.
///
/// Each start creates the file anew and stores its identity in it (inode and time of creation): a
/// copy has a different identity. At run time the head of the log is stored about once a second,
/// after the commits up to it are on disk and outside their critical path. A plain crash or power
/// failure leaves a valid mark, and is not taken for a loss.
///
/// It does not detect the rollback of a whole file system or volume to a snapshot, a copy written
/// into the same files (`cp` over them, `rsync --inplace`) that was made since the last start, or
/// the loss of less than about the last second. Those are detected by the first cursor that is
/// ahead of the log. Moving a directory to another file system copies it, which costs every client
/// one rebuild.
final class LogMark: Sendable {
    /// The name of the file in the data directory.
    static let fileName = "store.mark"

    struct Content: Equatable {
        /// The random id of the log it belongs to.
        var log: UInt64
        var inode: UInt64
        /// The time of creation, nanoseconds since 1970; 0 if the file system does not provide it.
        var born: Int64
        /// The sequence that the log reached at least.
        var head: UInt64
    }

    /// The size of a record. Two records are written alternately: a torn write leaves the other one
    /// intact.
    private static let recordBytes = 512
    private static let recordCount = 2

    private let descriptor: Int32
    private let state: Mutex<(content: Content, next: Int)>

    private init(_ descriptor: Int32, _ content: Content) {
        self.descriptor = descriptor
        state = Mutex((content, 1))
    }

    deinit { close(descriptor) }

    /// Creates the file anew, replacing an existing one.
    ///
    /// - Throws: `StoreError.unavailable` if the directory is not writable.
    static func make(in directory: String, log: UInt64, head: UInt64) throws -> LogMark {
        let path = directory + "/" + fileName
        let temporary = path + ".new"
        unlink(temporary)
        let file = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw StoreError.unavailable(reason: "cannot write \(fileName) (\(errno))")
        }
        var content = Content(log: log, inode: 0, born: 0, head: head)
        (content.inode, content.born) = identity(of: file)
        let mark = LogMark(file, content)
        let bytes = record(content) + record(content)
        guard bytes.withUnsafeBytes({ pwrite(file, $0.baseAddress, $0.count, 0) }) == bytes.count,
            fsync(file) == 0, rename(temporary, path) == 0
        else { throw StoreError.unavailable(reason: "cannot write \(fileName) (\(errno))") }
        let parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if parent >= 0 {
            fsync(parent)
            close(parent)
        }
        return mark
    }

    /// Records that the log reached `head`, which is on disk. Blocks until the mark is on disk.
    func note(_ head: UInt64) {
        state.withLock { state in
            guard head > state.content.head else { return }
            state.content.head = head
            let bytes = Self.record(state.content)
            let place = off_t(state.next * Self.recordBytes)
            state.next = (state.next + 1) % Self.recordCount
            // A failed write is repeated with the next head; until then the mark is less precise.
            _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, place) }
            _ = fdatasync(descriptor)
        }
    }

    /// Compares the mark of a directory with its log.
    ///
    /// - Returns: `nil` if there is no sign of a loss.
    static func suspectedLoss(in directory: String, log: UInt64, head: UInt64) -> SuspectedLoss? {
        let file = open(directory + "/" + fileName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        // The log has a mark, so its absence means a copy that did not include all files.
        guard file >= 0 else { return .copied }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: recordBytes * recordCount)
        let count = bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
        let (inode, born) = identity(of: file)
        return suspectedLoss(
            read(bytes.prefix(max(0, count))), inode: inode, born: born, log: log, head: head)
    }

    /// Compares the content of a mark with the identity of its file and with the log.
    static func suspectedLoss(
        _ content: Content?, inode: UInt64, born: Int64, log: UInt64, head: UInt64
    ) -> SuspectedLoss? {
        guard let content, content.log == log else { return .copied }
        // Some file systems renumber files with each mount, but keep their creation times.
        let isSame =
            born != 0 && content.born != 0 ? born == content.born : inode == content.inode
        guard isSame else { return .copied }
        return content.head > head ? .shortened(marked: content.head, head: head) : nil
    }

    private static func identity(of file: Int32) -> (inode: UInt64, born: Int64) {
        var inode: UInt64 = 0
        var born: Int64 = 0
        guard gateway_file_identity(file, &inode, &born) == 0 else { return (0, 0) }
        return (inode, born)
    }

    // MARK: Records

    /// Returns a record: one line of text with a checksum, padded with spaces.
    static func record(_ content: Content) -> [UInt8] {
        let text = "1 \(content.log) \(content.inode) \(content.born) \(content.head)"
        let line = Array("\(text) \(checksum(text))".utf8)
        return line + Array(repeating: UInt8(ascii: " "), count: recordBytes - line.count - 1)
            + [UInt8(ascii: "\n")]
    }

    /// Returns the intact record with the highest head; `nil` if there is none.
    static func read(_ bytes: some Collection<UInt8>) -> Content? {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        return lines.prefix(recordCount).compactMap(content).max { $0.head < $1.head }
    }

    private static func content(_ line: Substring) -> Content? {
        let words = line.split(separator: " ")
        guard words.count == 6, words[0] == "1", let log = UInt64(words[1]),
            let inode = UInt64(words[2]), let born = Int64(words[3]), let head = UInt64(words[4]),
            words[5] == "\(checksum(words.prefix(5).joined(separator: " ")))"
        else { return nil }
        return Content(log: log, inode: inode, born: born, head: head)
    }

    /// Returns the FNV-1a hash of 64 bits, which detects torn writes but not tampering.
    private static func checksum(_ text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}

extension SQLiteStore {
    /// The database key for the log's id in the mark.
    private static let markKey = "log mark"

    /// Checks whether the data directory was copied, or its log lost its end, since the last start.
    /// Returns `nil` for a directory that never had a mark, and for a store in memory.
    package func suspectedLoss() throws -> SuspectedLoss? {
        guard let directory, let log = try markedLog() else { return nil }
        return LogMark.suspectedLoss(in: directory, log: log, head: head)
    }

    /// Creates the mark anew, after the directory was accepted as valid. Call it when the cursors
    /// that a loss may affect are void on disk.
    package func renewMark() throws {
        guard let directory else { return }
        let known = try markedLog()
        let log = known ?? UInt64.random(in: 1...UInt64(Int64.max))
        let made = try LogMark.make(in: directory, log: log, head: head)
        mark.withLock { $0 = made }
        guard known == nil else { return }
        // Stored afterwards: a database that has the key must have a mark.
        try writeNow { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
                arguments: [Self.markKey, Data(String(log).utf8)])
        }
    }

    /// Records the head of the log in the mark. Blocks.
    package func noteHead() {
        let head = head
        mark.withLock { $0 }?.note(head)
    }

    private func markedLog() throws -> UInt64? {
        try meta(Self.markKey).flatMap { UInt64(String(decoding: $0, as: UTF8.self)) }
    }
}
