import GatewayTestSupport
import WidgetModel

/// The writes and syncs of one file, in order, as strace wrote them down.
///
/// What was synced survives a loss of power. Of every later write the disk may have kept all, some
/// sectors or nothing.
struct WriteJournal {
    private enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncate(size: Int)
    }

    /// Bytes that a disk writes whole.
    static let sectorBytes = 512

    private let suffix: [UInt8]
    private var content: [UInt8]
    /// Changes after the last sync.
    private var unsynced: [Change] = []
    /// Syncs that have begun, by thread: the number of changes that they cover.
    private var syncing: [Int: Int] = [:]
    /// Changes that were synced so far, so that a number can be told from its place.
    private var syncedCount = 0
    /// Writes that a loss of power kept, tore and dropped.
    private(set) var (kept, torn, dropped) = (0, 0, 0)

    /// `path` is the end of the file's path, `content` what it held when the journal began.
    init(path: String, content: [UInt8]) {
        suffix = Array((Self.hex(path) + ">").utf8)
        self.content = content
    }

    /// Reads a line of `strace -f -y -xx`.
    mutating func read(_ line: ArraySlice<UInt8>) {
        var reader = LineReader(line)
        guard let thread = reader.number() else { return }
        reader.skipSpaces()
        if reader.skip("<... fdatasync resumed>") || reader.skip("<... fsync resumed>") {
            if let count = syncing.removeValue(forKey: thread) { sync(count) }
        } else if reader.skip("fdatasync(") || reader.skip("fsync(") {
            guard isOwn(&reader) else { return }
            let count = syncedCount + unsynced.count
            if reader.endsUnfinished { syncing[thread] = count } else { sync(count) }
        } else if reader.skip("pwrite64(") {
            guard isOwn(&reader), reader.skip(", "), let bytes = reader.hexString(),
                reader.skip(", "), reader.number() != nil, reader.skip(", "),
                let offset = reader.number()
            else { return }
            unsynced.append(.write(offset: offset, bytes: bytes))
        } else if reader.skip("ftruncate(") {
            guard isOwn(&reader), reader.skip(", "), let size = reader.number() else { return }
            unsynced.append(.truncate(size: size))
        }
    }

    /// Text as `strace -xx` writes it.
    static func hex(_ text: String) -> String {
        let digits = Array("0123456789abcdef")
        return text.utf8.map { "\\x\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined()
    }

    private func isOwn(_ reader: inout LineReader) -> Bool {
        guard reader.number() != nil, let path = reader.through(UInt8(ascii: ">")) else {
            return false
        }
        return path.suffix(suffix.count).elementsEqual(suffix)
    }

    private mutating func sync(_ count: Int) {
        let own = max(0, min(unsynced.count, count - syncedCount))
        for change in unsynced.prefix(own) { apply(change) { _ in true } }
        unsynced.removeFirst(own)
        syncedCount += own
    }

    /// Returns what the file may hold after the power was lost.
    mutating func contentAfterLoss(
        using generator: inout SplitMix64
    ) -> [UInt8] {
        for change in unsynced {
            switch generator.below(3) {
            case 0: dropped += 1
            case 1:
                kept += 1
                apply(change) { _ in true }
            default:
                torn += 1
                let seed = generator.next()
                apply(change) { sector in
                    var own = SplitMix64(seed: seed &+ UInt64(sector))
                    return own.happens(50)
                }
            }
        }
        unsynced = []
        return content
    }

    /// Applies a change to those sectors of it that `isKept` names.
    private mutating func apply(_ change: Change, isKept: (_ sector: Int) -> Bool) {
        switch change {
        case .truncate(let size):
            // A truncation has no sectors: it is kept with its first one.
            guard isKept(0) else { return }
            if content.count > size { content.removeLast(content.count - size) }
            grow(to: size)
        case .write(let offset, let bytes):
            for (index, byte) in bytes.enumerated()
            where isKept((offset + index) / Self.sectorBytes) {
                grow(to: offset + index + 1)
                content[offset + index] = byte
            }
        }
    }

    private mutating func grow(to size: Int) {
        if content.count < size {
            content += [UInt8](repeating: 0, count: size - content.count)
        }
    }
}

/// Reads one line of strace from its begin.
private struct LineReader {
    private var rest: ArraySlice<UInt8>

    init(_ line: ArraySlice<UInt8>) { rest = line }

    var endsUnfinished: Bool { rest.suffix(16).elementsEqual("<unfinished ...>".utf8) }

    mutating func skipSpaces() { rest = rest.drop { $0 == UInt8(ascii: " ") } }

    mutating func skip(_ text: String) -> Bool {
        guard rest.starts(with: text.utf8) else { return false }
        rest = rest.dropFirst(text.utf8.count)
        return true
    }

    mutating func number() -> Int? {
        let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        rest = rest.dropFirst(digits.count)
        return Int(String(decoding: digits, as: UTF8.self))
    }

    /// The bytes up to `end` and it.
    mutating func through(_ end: UInt8) -> ArraySlice<UInt8>? {
        guard let index = rest.firstIndex(of: end) else { return nil }
        defer { rest = rest[(index + 1)...] }
        return rest[...index]
    }

    /// A string whose bytes are written as `\xNN`; `nil` when it was cut.
    mutating func hexString() -> [UInt8]? {
        guard skip("\"") else { return nil }
        var bytes: [UInt8] = []
        while rest.first == UInt8(ascii: "\\"), rest.count >= 4 {
            let start = rest.startIndex
            guard let high = Self.digit(rest[start + 2]), let low = Self.digit(rest[start + 3])
            else { return nil }
            bytes.append(high << 4 | low)
            rest = rest.dropFirst(4)
        }
        return skip("\"") && !rest.starts(with: "...".utf8) ? bytes : nil
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
