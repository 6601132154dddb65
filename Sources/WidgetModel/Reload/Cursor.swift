/// The position in a change log up to which a client has applied everything. It is the only state a
/// client needs.
///
/// On the wire it is opaque text. This project's client only compares cursors; the gateway trusts a
/// cursor only if its ``tag`` proves that the gateway issued it.
public struct Cursor: Sendable, Hashable {
    /// The epoch of the log that the sequence belongs to.
    public var epoch: EpochID
    /// The last applied sequence.
    public var sequence: UInt64
    /// The proof that the gateway issued the cursor; see `CursorSeal` in the core.
    public var tag: UInt64

    /// Creates a cursor with the issuer's tag.
    public init(epoch: EpochID, sequence: UInt64, tag: UInt64) {
        self.epoch = epoch
        self.sequence = sequence
        self.tag = tag
    }

    /// The length of the text form, bytes.
    public static let textBytes = 32

    /// Reads the text form; returns `nil` for anything else.
    public init?(text: String) {
        var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
        var count = 0
        for byte in text.utf8 {
            guard count < Self.textBytes, let digit = Self.digit(byte) else { return nil }
            // Shifts the 192-bit number left by six bits, then adds the digit.
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

    /// The text form: 32 characters of `A-Za-z0-9-_`, valid in headers, URLs and SSE ids.
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

    /// Encodes a digit in base64url (RFC 4648 section 5); 24 bytes need no padding.
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
    /// Orders by epoch, then by sequence. A client's own cursor is the lowest of its items'
    /// cursors.
    public static func < (left: Cursor, right: Cursor) -> Bool {
        (left.epoch.ordinal, left.sequence) < (right.epoch.ordinal, right.sequence)
    }
}

/// The identity of one epoch of a log: its number, and a nonce that no restored copy repeats.
public struct EpochID: Sendable, Hashable {
    /// The number of the epoch in its data directory, counted from 1.
    public let ordinal: UInt32
    /// A random number that distinguishes epochs with the same ordinal, before and after a restore.
    public let nonce: UInt32

    /// Creates an epoch's identity.
    public init(ordinal: UInt32, nonce: UInt32) {
        self.ordinal = ordinal
        self.nonce = nonce
    }
}
