/// The parts of a response's head that the generator needs.
struct ResponseHead: Equatable {
    /// How the body ends.
    enum Framing: Equatable {
        case none
        /// After so many bytes.
        case length(Int)
        /// With the last chunk.
        case chunked
        /// With the connection.
        case untilClose
    }

    let status: Int
    /// How the body ends.
    let framing: Framing
    /// Whether the body is a `text/event-stream`.
    let isEventStream: Bool

    /// Reads a head, up to and with its empty line.
    init(_ bytes: [UInt8]) throws(ResponseFault) {
        let lines = bytes.split(separator: 0x0A).map { $0.last == 0x0D ? $0.dropLast() : $0 }
        guard let first = lines.first else { throw .malformedHead }
        let words = first.split(separator: 0x20, maxSplits: 2)
        guard words.count >= 2, words[0].starts(with: "HTTP/1.".utf8), words[1].count == 3,
            let status = Int(String(decoding: words[1], as: UTF8.self)), status >= 100
        else { throw .malformedHead }
        var (length, isChunked, isEventStream) = (Int?.none, false, false)
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = Self.trimmed(line[(colon + 1)...]).lowercased()
            switch String(decoding: line[..<colon], as: UTF8.self).lowercased() {
            case "content-length":
                guard let count = Int(value), count >= 0 else { throw .malformedHead }
                length = count
            case "transfer-encoding": isChunked = value.hasSuffix("chunked")
            case "content-type": isEventStream = value.hasPrefix("text/event-stream")
            default: break
            }
        }
        self.status = status
        self.isEventStream = isEventStream
        if status < 200 || status == 204 || status == 304 {
            framing = .none
        } else if isChunked {
            framing = .chunked
        } else {
            framing = length.map { .length($0) } ?? .untilClose
        }
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> String {
        let start = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        let end = start.lastIndex { $0 != 0x20 && $0 != 0x09 }
        return String(decoding: end.map { start[...$0] } ?? [], as: UTF8.self)
    }
}
