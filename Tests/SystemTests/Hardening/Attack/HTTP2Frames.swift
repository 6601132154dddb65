import WidgetModel

/// HTTP/2 frames (RFC 9113 section 6), made byte by byte so that they can be invalid.
enum HTTP2Frames {
    enum Kind: UInt8 {
        case data, headers, priority, reset, settings, push, ping, goAway, windowUpdate
        case continuation
    }

    struct Frame {
        let kind: UInt8
        let flags: UInt8
        let stream: UInt32
        let payload: [UInt8]
    }

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    static let endStream: UInt8 = 1
    static let endHeaders: UInt8 = 4

    static func frame(
        _ kind: Kind, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []
    ) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
            + [kind.rawValue, flags] + number(stream) + payload
    }

    static func number(_ value: UInt32) -> [UInt8] {
        [
            UInt8(value >> 24), UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF),
            UInt8(value & 0xFF),
        ]
    }

    /// Returns fields as literals without indexing (RFC 7541 section 6.2.2).
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        block(fields.map { ($0.0, Array($0.1.utf8)) })
    }

    static func block(_ fields: [(String, [UInt8])]) -> [UInt8] {
        fields.flatMap { [0] + text(Array($0.0.utf8)) + text($0.1) }
    }

    private static func text(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
        var length: [UInt8] = [127]
        var rest = bytes.count - 127
        while rest >= 128 {
            length.append(UInt8(rest % 128 + 128))
            rest /= 128
        }
        return length + [UInt8(rest)] + bytes
    }

    /// Returns the pseudo header fields of a request.
    static func request(_ method: String, _ path: String) -> [(String, String)] {
        [(":method", method), (":scheme", "https"), (":path", path), (":authority", "localhost")]
    }

    /// Returns every whole frame in `bytes`.
    static func all(in bytes: [UInt8]) -> [Frame] {
        var frames: [Frame] = []
        var index = 0
        while index + 9 <= bytes.count {
            let count =
                Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
            let stream = bytes[(index + 5)..<(index + 9)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            guard index + 9 + count <= bytes.count else { break }
            frames.append(
                Frame(
                    kind: bytes[index + 3], flags: bytes[index + 4], stream: stream & 0x7FFF_FFFF,
                    payload: Array(bytes[(index + 9)..<(index + 9 + count)])))
            index += 9 + count
        }
        return frames
    }

    /// Returns the status at the start of a HEADERS frame: an entry of the static table, or a
    /// literal of digits in Huffman code (RFC 7541 appendices A and B); 0 for anything else.
    static func status(_ block: [UInt8]) -> Int {
        guard let first = block.first else { return 0 }
        let indexed = [200, 204, 206, 304, 400, 404, 500]
        if (0x88...0x8E).contains(first) { return indexed[Int(first - 0x88)] }
        guard [0x48, 0x08, 0x18].contains(first), block.count > 1 else { return 0 }
        let value = Array(block[2...].prefix(Int(block[1] & 0x7F)))
        guard block[1] & 0x80 != 0 else { return Int(String(decoding: value, as: UTF8.self)) ?? 0 }
        var bits = value.flatMap { byte in (0..<8).map { byte >> (7 - $0) & 1 } }[...]
        var result = 0
        for _ in 0..<3 {
            let five = bits.prefix(5).reduce(0) { $0 << 1 | Int($1) }
            if five <= 2 {
                result = result * 10 + five
                bits = bits.dropFirst(5)
            } else {
                let six = bits.prefix(6).reduce(0) { $0 << 1 | Int($1) }
                result = result * 10 + six - 0x19 + 3
                bits = bits.dropFirst(6)
            }
        }
        return result
    }
}
