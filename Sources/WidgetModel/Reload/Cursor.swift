/// "I have applied everything up to here": the only state a client needs.
///
/// On the wire it is opaque text. This project's own client reads it only to tell which of two
/// cursors is lower; the gateway trusts it only after ``tag`` proved that it wrote it itself.
public struct Cursor: Sendable, Hashable {
    /// The log epoch the sequence belongs to.
    public var epoch: EpochID
    /// The last sequence applied.
    public var sequence: UInt64
    /// The writer's proof of authorship; see `CursorSeal` in the core.
    public var tag: UInt64

    /// A cursor with the writer's tag.
    public init(epoch: EpochID, sequence: UInt64, tag: UInt64) {
        self.epoch = epoch
        self.sequence = sequence
        self.tag = tag
    }

    /// Length of the text form.
    public static let textBytes = 32

    /// Reads the text form; `nil` for anything else.
    public init?(text: String) {
        var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
        var count = 0
        for byte in text.utf8 {
            guard count < Self.textBytes, let digit = Self.digit(byte) else { return nil }
            // 192 bits in all: shift the whole number left by six, then add the digit.
            words.0 = words.0 << 6 | words.1 >> 58
            words.1 = words.1 << 6 | words.2 >> 58
            words.2 = words.2 << 6 | UInt64(digit)
            count += 1
        }
        guard count == Self.textBytes else { return nil }
        epoch = EpochID(ordinal: UInt32(words.0 >> 32), nonce: UInt32(truncatingIfNeeded: words.0))
        sequence = words.1
        tag = words.2
    }

    /// The text form: 32 characters of `A-Za-z0-9-_`, fit for headers, URLs and SSE ids.
    public var text: String {
        String(unsafeUninitializedCapacity: Self.textBytes) { buffer in
            var words = (UInt64(epoch.ordinal) << 32 | UInt64(epoch.nonce), sequence, tag)
            for index in stride(from: Self.textBytes - 1, through: 0, by: -1) {
                buffer[index] = Self.character(UInt8(words.2 & 63))
                words.2 = words.2 >> 6 | words.1 << 58
                words.1 = words.1 >> 6 | words.0 << 58
                words.0 >>= 6
            }
            return Self.textBytes
        }
    }

    /// Base64url (RFC 4648 section 5); 24 bytes need no padding.
    private static func character(_ digit: UInt8) -> UInt8 {
        switch digit {
        case 0..<26: UInt8(ascii: "A") + digit
        case 26..<52: UInt8(ascii: "a") + digit - 26
        case 52..<62: UInt8(ascii: "0") + digit - 52
        case 62: UInt8(ascii: "-")
        default: UInt8(ascii: "_")
        }
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}

extension Cursor: Comparable {
    /// Orders by epoch, then sequence: a client's own cursor is the lowest of those it holds.
    public static func < (left: Cursor, right: Cursor) -> Bool {
        (left.epoch.ordinal, left.sequence) < (right.epoch.ordinal, right.sequence)
    }
}

/// Names one epoch of a log: its place among the epochs, and a number no restored copy repeats.
public struct EpochID: Sendable, Hashable {
    /// Counts the epochs of a data directory from 1.
    public let ordinal: UInt32
    /// Random: two epochs of one ordinal, before and after a restore, differ in it.
    public let nonce: UInt32

    /// An epoch's name.
    public init(ordinal: UInt32, nonce: UInt32) {
        self.ordinal = ordinal
        self.nonce = nonce
    }
}
