/// Reads the HTTP/1.1 responses of one connection from pieces cut anywhere. Returns the places of
/// body bytes in its input, and copies none of them.
struct ResponseReader {
    /// Longest head, bytes.
    static let headBytesMax = 16 * 1024

    enum Step: Equatable {
        /// All bytes are used up.
        case needsMore
        case head(ResponseHead)
        /// These of the bytes given are body, chunk framing removed.
        case body(Range<Int>)
        case end
    }

    private enum State {
        case head
        case length(Int)
        case chunkSize(value: Int, digits: Int)
        case chunkExtension(Int)
        case chunkData(Int)
        case chunkEnd
        case trailers(lineBytes: Int)
        case untilClose
        case complete
    }

    private var state = State.head
    private var head: [UInt8] = []

    /// Goes on at `place` of `bytes`, and moves it past what was read. Call it until it says
    /// ``Step/needsMore``, then with the next bytes from 0.
    mutating func next(_ bytes: Span<UInt8>, at place: inout Int) throws(ResponseFault) -> Step {
        if case .complete = state {
            state = .head
            return .end
        }
        while place < bytes.count {
            switch state {
            case .head:
                if let head = try readHead(bytes, &place) { return .head(head) }
            case .length(let left):
                return .body(take(left, of: bytes, &place) { $0 == 0 ? .complete : .length($0) })
            case .chunkData(let left):
                return .body(take(left, of: bytes, &place) { $0 == 0 ? .chunkEnd : .chunkData($0) })
            case .untilClose:
                defer { place = bytes.count }
                return .body(place..<bytes.count)
            case .complete:
                state = .head
                return .end
            default:
                try readFraming(bytes[place])
                place += 1
                if case .complete = state {
                    state = .head
                    return .end
                }
            }
        }
        return .needsMore
    }

    private mutating func take(
        _ left: Int, of bytes: Span<UInt8>, _ place: inout Int, _ after: (Int) -> State
    ) -> Range<Int> {
        let range = place..<min(bytes.count, place + min(left, bytes.count - place))
        place = range.upperBound
        state = after(left - range.count)
        return range
    }

    private mutating func readHead(
        _ bytes: Span<UInt8>, _ place: inout Int
    ) throws(ResponseFault) -> ResponseHead? {
        while place < bytes.count {
            guard head.count < Self.headBytesMax else { throw .headTooLong }
            head.append(bytes[place])
            place += 1
            guard head.last == 0x0A, head.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A] else { continue }
            let read = try ResponseHead(head)
            head = []
            // An interim answer is followed by the real one.
            if (100..<200).contains(read.status) { continue }
            state =
                switch read.framing {
                case .none, .length(0): .complete
                case .length(let count): .length(count)
                case .chunked: .chunkSize(value: 0, digits: 0)
                case .untilClose: .untilClose
                }
            return read
        }
        return nil
    }

    private static func hexDigit(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }

    private mutating func readFraming(_ byte: UInt8) throws(ResponseFault) {
        switch (state, byte) {
        case (.chunkSize(let value, let digits), _):
            if let digit = Self.hexDigit(byte) {
                // Seven digits are more than any chunk here, and cannot overflow.
                guard digits < 7 else { throw .framing }
                state = .chunkSize(value: value * 16 + digit, digits: digits + 1)
            } else {
                guard digits > 0 else { throw .framing }
                state = .chunkExtension(value)
                try readFraming(byte)
            }
        case (.chunkExtension(let value), 0x0A):
            state = value == 0 ? .trailers(lineBytes: 0) : .chunkData(value)
        case (.chunkExtension, _): break
        case (.chunkEnd, 0x0A): state = .chunkSize(value: 0, digits: 0)
        case (.chunkEnd, 0x0D): break
        case (.trailers(let count), 0x0A):
            state = count == 0 ? .complete : .trailers(lineBytes: 0)
        case (.trailers, 0x0D): break
        case (.trailers(let count), _):
            guard count < Self.headBytesMax else { throw .headTooLong }
            state = .trailers(lineBytes: count + 1)
        default: throw .framing
        }
    }
}

/// The reason why bytes are no readable response.
enum ResponseFault: Error, Equatable {
    /// The head is longer than ``ResponseReader/headBytesMax``.
    case headTooLong
    /// The status line or a length is not as RFC 9112 has it.
    case malformedHead
    /// The chunk framing is broken.
    case framing
}
