/// Writes what a client sends on an HTTP/2 connection with one request, stream 1 (RFC 9113).
enum HTTP2Request {
    /// How far the server may be ahead, bytes: the window of the stream, and of the connection.
    static let windowBytes: UInt32 = 1 << 20
    /// What both windows are before anything is said of them.
    private static let windowBytesAtFirst: UInt32 = 65_535

    /// The acknowledgement of the server's settings.
    static let settingsAcknowledgement = frame(kind: 4, flags: 0x1, stream: 0, [])

    /// All that goes out when the connection opens: preface, settings, window, and a GET request
    /// for `localhost`.
    ///
    /// - Parameter fields: Header fields; their names become lowercase. All together have to stay
    ///   below ``HTTP2Reader/frameBytesMax``.
    static func start(_ path: String, fields: [(String, String)]) -> [UInt8] {
        // No pushes; the window of streams.
        let settings = setting(2, 0) + setting(4, windowBytes)
        let head = [
            (":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path),
        ]
        let block = (head + fields).flatMap { literal($0.lowercased(), $1) }
        return Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
            + frame(kind: 4, flags: 0, stream: 0, settings)
            + windowUpdate(stream: 0, windowBytes - windowBytesAtFirst)
            // The flags: end of the headers, and of the stream.
            + frame(kind: 1, flags: 0x4 | 0x1, stream: 1, block)
    }

    /// The answer to a ping.
    static func pong(_ value: UInt64) -> [UInt8] {
        frame(kind: 6, flags: 0x1, stream: 0, bytes(of: value))
    }

    /// Lets the server send so many more bytes, on the connection and on the stream.
    static func windowUpdates(_ count: Int) -> [UInt8] {
        let count = UInt32(clamping: count)
        return windowUpdate(stream: 0, count) + windowUpdate(stream: 1, count)
    }

    private static func setting(_ name: UInt16, _ value: UInt32) -> [UInt8] {
        bytes(of: name) + bytes(of: value)
    }

    private static func windowUpdate(stream: UInt32, _ count: UInt32) -> [UInt8] {
        frame(kind: 8, flags: 0, stream: stream, bytes(of: count))
    }

    private static func frame(
        kind: UInt8, flags: UInt8, stream: UInt32, _ payload: [UInt8]
    ) -> [UInt8] {
        // The length has three bytes.
        bytes(of: UInt32(clamping: payload.count)).dropFirst()
            + [kind, flags] + bytes(of: stream) + payload
    }

    /// A header field that is not indexed and not in Huffman's code (RFC 7541 section 6.2.2).
    private static func literal(_ name: String, _ value: String) -> [UInt8] {
        [0] + text(name) + text(value)
    }

    private static func text(_ text: String) -> [UInt8] { count(text.utf8.count) + text.utf8 }

    /// An integer with a prefix of 7 bits (RFC 7541 section 5.1).
    private static func count(_ value: Int) -> [UInt8] {
        guard value >= 0x7F else { return [UInt8(truncatingIfNeeded: value)] }
        var (bytes, rest): ([UInt8], Int) = ([0x7F], value - 0x7F)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(truncatingIfNeeded: rest)]
    }

    private static func bytes(of value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}
