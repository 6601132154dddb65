/// Reads what a server sends on an HTTP/2 connection with one request, stream 1 (RFC 9113), from
/// pieces cut anywhere.
///
/// Hands out where body bytes stand in what it was given, copies none of them, and keeps nothing of
/// a header block but its first byte. Read on after a ``HTTP2Fault`` it says nothing of use.
struct HTTP2Reader {
    /// Longest payload of a frame, bytes: what a peer may send that was not allowed more.
    static let frameBytesMax = 16 * 1024
    private static let frameHeaderBytes = 9
    /// What RFC 7541 section 6.1 makes of entry 8 of its static table, `:status: 200`.
    private static let statusOK: UInt8 = 0x88

    /// What was found next.
    enum Step: Equatable {
        /// All bytes are used up.
        case needsMore
        /// The server's settings came and are to be acknowledged.
        case settings
        /// A ping came and is to be answered with the same bytes.
        case ping(UInt64)
        /// The head of the response is complete; whether its status is 200 and a body follows.
        case head(isOK: Bool)
        /// These of the bytes given are body, frame headers and padding removed.
        case body(Range<Int>)
        /// The response is complete.
        case end
    }

    /// The frames that mean something here; all others are skipped.
    private enum Kind: UInt8 {
        case data = 0, headers = 1, reset = 3, settings, push, ping, goAway, continuation = 9
    }

    private enum Flag {
        static let acknowledged: UInt8 = 0x1
        static let endStream: UInt8 = 0x1
        static let endHeaders: UInt8 = 0x4
        static let padded: UInt8 = 0x8
        static let priority: UInt8 = 0x20
    }

    // The frame that is being read.
    private var headerPlace = 0
    private var (length, kind, flags, stream): (Int, Kind?, UInt8, UInt32) = (0, nil, 0, 0)
    /// Bytes of the payload to come; of those, the ones before and after its content.
    private var (left, prefix, padding) = (0, 0, 0)
    /// The first bytes of the content, at most 8, as a number.
    private var (value, valueBytes): (UInt64, Int) = (0, 0)

    // The header block and the response.
    private var isInBlock = false
    private var blockStart: UInt8?
    private var endsStream = false
    private var hasHead = false
    private var credit = 0

    /// Goes on at `place` of `bytes`, and moves it past what was read. Call it until it says
    /// ``Step/needsMore``, then with the next bytes from 0.
    mutating func next(_ bytes: Span<UInt8>, at place: inout Int) throws(HTTP2Fault) -> Step {
        while true {
            // A frame says what it means with its last byte, without another one.
            if headerPlace == Self.frameHeaderBytes, left == 0 {
                headerPlace = 0
                if let step = try endFrame() { return step }
            }
            guard place < bytes.count else { return .needsMore }
            if headerPlace < Self.frameHeaderBytes {
                readHeader(bytes[place])
                place += 1
                if headerPlace == Self.frameHeaderBytes { try beginFrame() }
            } else if let body = try readPayload(bytes, &place) {
                return .body(body)
            }
        }
    }

    /// Takes the bytes of flow-controlled frames that came since it was last taken, padding
    /// included, once they are at least `bytes`: the server may send so many more.
    mutating func takeCredit(atLeast bytes: Int) -> Int? {
        guard credit >= bytes else { return nil }
        defer { credit = 0 }
        return credit
    }

    private mutating func readHeader(_ byte: UInt8) {
        switch headerPlace {
        case 0: length = Int(byte)
        case 1, 2: length = length << 8 | Int(byte)
        case 3: kind = Kind(rawValue: byte)
        case 4: flags = byte
        // The highest bit of the number is reserved.
        case 5: stream = UInt32(byte & 0x7F)
        default: stream = stream << 8 | UInt32(byte)
        }
        headerPlace += 1
    }

    private mutating func beginFrame() throws(HTTP2Fault) {
        guard length <= Self.frameBytesMax else { throw .oversizedFrame }
        // Nothing may come between the frames of a header block.
        guard isInBlock == (kind == .continuation) else { throw .malformedFrame }
        switch kind {
        case .data: guard stream == 1, hasHead else { throw .malformedFrame }
        case .headers, .continuation: guard stream == 1 else { throw .malformedFrame }
        case .ping: guard length == 8 else { throw .malformedFrame }
        case .reset: guard length == 4 else { throw .malformedFrame }
        case .goAway: guard length >= 8 else { throw .malformedFrame }
        // Refused in the client's settings.
        case .push: throw .malformedFrame
        default: break
        }
        (left, prefix, padding, value, valueBytes) = (length, 0, 0, 0, 0)
        if kind == .headers {
            (isInBlock, blockStart) = (true, nil)
            endsStream = flags & Flag.endStream != 0
            if flags & Flag.priority != 0 { prefix = 5 }
        }
        if isPadded { prefix += 1 }
        guard prefix <= left else { throw .malformedFrame }
    }

    private var isPadded: Bool {
        (kind == .data || kind == .headers) && flags & Flag.padded != 0
    }

    /// Reads some of the payload; returns what of it is body.
    private mutating func readPayload(
        _ bytes: Span<UInt8>, _ place: inout Int
    ) throws(HTTP2Fault) -> Range<Int>? {
        if prefix > 0 {
            // The length of the padding comes first, then the priority.
            if isPadded, left == length { padding = Int(bytes[place]) }
            place += 1
            left -= 1
            prefix -= 1
            guard padding + prefix <= left else { throw .malformedFrame }
            return nil
        }
        let hasContent = left > padding
        let start = place
        let count = min(hasContent ? left - padding : left, bytes.count - place)
        place += count
        left -= count
        guard hasContent else {
            padding = left
            return nil
        }
        switch kind {
        case .data: return start..<place
        case .headers, .continuation: blockStart = blockStart ?? bytes[start]
        default:
            for number in start..<place where valueBytes < 8 {
                value = value << 8 | UInt64(bytes[number])
                valueBytes += 1
            }
        }
        return nil
    }

    private mutating func endFrame() throws(HTTP2Fault) -> Step? {
        let code = UInt32(truncatingIfNeeded: value)
        switch kind {
        case .data:
            credit += length
            return flags & Flag.endStream != 0 ? .end : nil
        case .headers, .continuation:
            guard flags & Flag.endHeaders != 0 else { return nil }
            isInBlock = false
            // A second block is the trailers.
            guard !hasHead else { return .end }
            hasHead = true
            return .head(isOK: blockStart == Self.statusOK && !endsStream)
        case .settings: return flags & Flag.acknowledged != 0 ? nil : .settings
        case .ping: return flags & Flag.acknowledged != 0 ? nil : .ping(value)
        case .reset: throw .reset(code: code)
        // The low half of the first 8 bytes; before it stands the last stream.
        case .goAway: throw .goAway(code: code)
        default: return nil
        }
    }
}

/// Why an HTTP/2 connection with one request cannot go on.
enum HTTP2Fault: Error, Equatable {
    /// A frame is longer than ``HTTP2Reader/frameBytesMax``.
    case oversizedFrame
    /// A frame is not as RFC 9113 has it, or stands where it may not.
    case malformedFrame
    /// The server gave the stream up, with this error code.
    case reset(code: UInt32)
    /// The server gives the connection up, with this error code.
    case goAway(code: UInt32)
}
