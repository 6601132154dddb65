import CLinux
import Foundation
import GRDB
import Synchronization

#if canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The reason why a start takes the log for one that may have lost its end.
package enum SuspectedLoss: Sendable, Equatable {
    /// The directory was copied since the last start: the copy may be an older one.
    case copied
    /// The log ended at `marked` or later, and ends at `head` now.
    case shortened(marked: UInt64, head: UInt64)
}

/// A small file beside the database by which a start recognises a data directory that was copied
/// back and a log that lost its end.
///
/// Each start makes the file anew and notes in it which file it is (inode and time of birth): a copy
/// of it is another file. While the gateway runs, the head of the log is noted about once a second,
/// after the commits it stands for are on disk and off their path. A plain crash or loss of power
/// leaves a mark that is true of the database: neither looks like a loss.
///
/// What it does not show: a snapshot of a whole file system or volume that was rolled back, a copy
/// put back byte by byte into the same files (`cp` over them, `rsync --inplace`) that was made since
/// the last start, and a lost end of less than about a second. Those are proved by the first cursor
/// that knows more than the log does. A directory that is moved to another file system is copied,
/// which costs every client one rebuild.
final class LogMark: Sendable {
    /// Name of the file within the data directory.
    static let fileName = "store.mark"

    /// The mark as it is read.
    struct Content: Equatable {
        /// The log it belongs to.
        var log: UInt64
        var inode: UInt64
        /// Nanoseconds since 1970; 0 where the file system does not tell.
        var born: Int64
        /// The log reached this far.
        var head: UInt64
    }

    /// Two records, written in turn: a torn write leaves the other one.
    private static let recordBytes = 512
    private static let recordCount = 2

    private let descriptor: Int32
    private let state: Mutex<(content: Content, next: Int)>

    private init(_ descriptor: Int32, _ content: Content) {
        self.descriptor = descriptor
        state = Mutex((content, 1))
    }

    deinit { close(descriptor) }

    /// Makes the file anew, in the place of one that may be there.
    ///
    /// - Throws: `StoreError.unavailable` where the directory cannot be written.
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

    /// Notes that the log reached `head`, which is on disk. Blocks until the mark is.
    func note(_ head: UInt64) {
        state.withLock { state in
            guard head > state.content.head else { return }
            state.content.head = head
            let bytes = Self.record(state.content)
            let place = off_t(state.next * Self.recordBytes)
            state.next = (state.next + 1) % Self.recordCount
            // What fails is noted again with the next head; until then the mark says less.
            _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, place) }
            _ = fdatasync(descriptor)
        }
    }

    /// Compares the mark of a directory with its log.
    ///
    /// - Returns: `nil` where nothing speaks for a loss.
    static func suspectedLoss(in directory: String, log: UInt64, head: UInt64) -> SuspectedLoss? {
        let file = open(directory + "/" + fileName, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        // The log has a mark, and a copy by other means than of all files has none.
        guard file >= 0 else { return .copied }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: recordBytes * recordCount)
        let count = bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
        let (inode, born) = identity(of: file)
        return suspectedLoss(
            read(bytes.prefix(max(0, count))), inode: inode, born: born, log: log, head: head)
    }

    /// Compares what a mark says with the file that it is in and with the log.
    static func suspectedLoss(
        _ content: Content?, inode: UInt64, born: Int64, log: UInt64, head: UInt64
    ) -> SuspectedLoss? {
        guard let content, content.log == log else { return .copied }
        // Some file systems number files anew with each mount; births stay.
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

    /// A record: one line of text with a checksum, filled up with spaces.
    static func record(_ content: Content) -> [UInt8] {
        let text = "1 \(content.log) \(content.inode) \(content.born) \(content.head)"
        let line = Array("\(text) \(checksum(text))".utf8)
        return line + Array(repeating: UInt8(ascii: " "), count: recordBytes - line.count - 1)
            + [UInt8(ascii: "\n")]
    }

    /// The record with the highest head of those that are whole; `nil` where none is.
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

    /// FNV-1a of 64 bits: against torn writes, not against people.
    private static func checksum(_ text: String) -> UInt64 {
        text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}

extension SQLiteStore {
    /// The key under which the database knows the log's name in the mark.
    private static let markKey = "log mark"

    /// Looks whether the data directory was copied, or its log lost its end, since the last start.
    /// A directory that never had a mark, or a store in memory, shows neither.
    package func suspectedLoss() throws -> SuspectedLoss? {
        guard let directory, let log = try markedLog() else { return nil }
        return LogMark.suspectedLoss(in: directory, log: log, head: head)
    }

    /// Makes the mark anew: the directory is what it should be. Called when cursors that a loss may
    /// concern are void, on disk.
    package func renewMark() throws {
        guard let directory else { return }
        let known = try markedLog()
        let log = known ?? UInt64.random(in: 1...UInt64(Int64.max))
        let made = try LogMark.make(in: directory, log: log, head: head)
        mark.withLock { $0 = made }
        guard known == nil else { return }
        // Afterwards: a database that knows of a mark has one.
        try whileOpen {
            try database.write { db in
                try db.execute(
                    sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
                    arguments: [Self.markKey, Data(String(log).utf8)])
            }
        }
    }

    /// Notes how far the log reaches in the mark. Blocks.
    package func noteHead() {
        let head = head
        mark.withLock { $0 }?.note(head)
    }

    private func markedLog() throws -> UInt64? {
        try whileOpen {
            try database.read { db in
                let value = try Data.fetchOne(
                    db, sql: "SELECT value FROM meta WHERE key = ?", arguments: [Self.markKey])
                return value.flatMap { UInt64(String(decoding: $0, as: UTF8.self)) }
            }
        }
    }
}
