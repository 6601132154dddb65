import Glibc

/// Counts the `data:` lines of an event stream that arrives in pieces cut anywhere, and keeps the
/// last `id:` when asked to. Allocates nothing for a delivery.
///
/// The gateway writes one `data: ` line for each notification; a line counts when its line feed is
/// there.
struct EventScanner {
    /// Longest id kept, bytes; a longer one is cut. The gateway's cursors have 32.
    static let idBytesMax = 128

    private enum Line {
        /// So many bytes of `data: ` are matched.
        case data(matched: Int)
        /// So many bytes of `id: ` are matched.
        case id(matched: Int)
        case start, dataValue, idValue, other
    }

    private static let dataPrefix: StaticString = "data: "
    private static let idPrefix: StaticString = "id: "
    private static let lineFeed = UInt8(ascii: "\n")

    /// Whether ids are kept.
    var keepsID = false
    /// The id lines that ended so far.
    private(set) var idCount = 0
    private var line = Line.start
    private var growing: [UInt8] = []
    private var latest: [UInt8] = []

    /// The value of the last id line that ended; empty before.
    var id: String { String(decoding: latest, as: UTF8.self) }

    /// Reads the next bytes; returns the number of `data: ` lines that ended in them.
    mutating func scan(_ bytes: Span<UInt8>) -> Int {
        var (count, place) = (0, 0)
        while place < bytes.count {
            let byte = bytes[place]
            switch line {
            case .start:
                place += 1
                line = Self.kind(of: byte)
            case .data(let matched):
                if byte == Self.byte(Self.dataPrefix, matched) {
                    place += 1
                    let isWhole = matched + 1 == Self.dataPrefix.utf8CodeUnitCount
                    line = isWhole ? .dataValue : .data(matched: matched + 1)
                } else {
                    line = .other
                }
            case .id(let matched):
                if byte == Self.byte(Self.idPrefix, matched) {
                    place += 1
                    let isWhole = matched + 1 == Self.idPrefix.utf8CodeUnitCount
                    line = isWhole ? .idValue : .id(matched: matched + 1)
                    if isWhole { growing.removeAll(keepingCapacity: true) }
                } else {
                    line = .other
                }
            case .dataValue, .idValue, .other:
                let end = Self.lineFeed(in: bytes, from: place)
                if case .idValue = line, keepsID { keep(bytes, place..<(end ?? bytes.count)) }
                guard let end else { return count }
                place = end + 1
                switch line {
                case .dataValue: count += 1
                case .idValue: endID()
                default: break
                }
                line = .start
            }
        }
        return count
    }

    private static func kind(of first: UInt8) -> Line {
        switch first {
        case byte(dataPrefix, 0): .data(matched: 1)
        case byte(idPrefix, 0): .id(matched: 1)
        case lineFeed: .start
        default: .other
        }
    }

    private mutating func keep(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        for place in range where growing.count < Self.idBytesMax { growing.append(bytes[place]) }
    }

    private mutating func endID() {
        idCount += 1
        guard keepsID else { return }
        if growing.last == UInt8(ascii: "\r") { growing.removeLast() }
        swap(&growing, &latest)
    }

    private static func byte(_ text: StaticString, _ place: Int) -> UInt8 {
        // Sound: the callers' `matched` is below the length of the literal.
        text.utf8Start[place]
    }

    private static func lineFeed(in bytes: Span<UInt8>, from start: Int) -> Int? {
        // Sound: the pointer stays inside the closure, and the search inside the span.
        bytes.withUnsafeBufferPointer { buffer in
            guard start < buffer.count, let base = buffer.baseAddress else { return nil }
            let found = memchr(base + start, Int32(lineFeed), buffer.count - start)
            return found.map { UnsafeRawPointer($0) - UnsafeRawPointer(base) }
        }
    }
}
