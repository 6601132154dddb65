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
        guard text.utf8.count == Self.textBytes, let bytes = Base64.url.decode(text) else {
            return nil
        }
        func word(_ index: Int) -> UInt64 {
            bytes[(index * 8)..<(index * 8 + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
        epoch = EpochID(ordinal: UInt32(word(0) >> 32), nonce: UInt32(truncatingIfNeeded: word(0)))
        sequence = word(1)
        tag = word(2)
    }

    /// The text form: 32 characters of `A-Za-z0-9-_`, valid in headers, URLs and SSE ids. It is
    /// base64url, of which 24 bytes need no padding.
    public var text: String {
        let first = UInt64(epoch.ordinal) << 32 | UInt64(epoch.nonce)
        let words = (first.bigEndian, sequence.bigEndian, tag.bigEndian)
        return withUnsafeBytes(of: words) { Base64.url.string(Array($0)) }
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
