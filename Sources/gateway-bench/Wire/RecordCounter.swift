/// Counts the TLS records in the ciphertext of one connection, cut anywhere (RFC 8446 section 5.1:
/// type, version, two bytes of length, then so many bytes).
struct RecordCounter {
    private static let headerBytes = 5

    /// The records that ended so far.
    private(set) var total = 0
    private var headerPlace = 0
    private var left = 0

    /// Reads the next bytes.
    mutating func count(_ bytes: Span<UInt8>) {
        var place = 0
        while place < bytes.count {
            if headerPlace < Self.headerBytes {
                // The last two bytes of the header are the length.
                if headerPlace == 3 { left = Int(bytes[place]) << 8 }
                if headerPlace == 4 { left |= Int(bytes[place]) }
                headerPlace += 1
                place += 1
            } else {
                let taken = min(left, bytes.count - place)
                place += taken
                left -= taken
            }
            if headerPlace == Self.headerBytes, left == 0 {
                total += 1
                headerPlace = 0
            }
        }
    }
}
