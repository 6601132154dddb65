/// The value of a statement's parameter, sent in PostgreSQL's binary format.
package enum PostgresValue: Sendable, Equatable {
    case null
    /// A `bigint`.
    case integer(Int64)
    case boolean(Bool)
    case text(String)
    /// A `bytea`.
    case bytes([UInt8])
    case uuid(UInt128)
    /// An `int[]`.
    case smallIntegers([Int32])
    /// A `bytea[]`, whose elements may be NULL.
    case byteArrays([[UInt8]?])
    case texts([String])

    /// Appends the binary form; nothing for a NULL.
    func append(to buffer: inout [UInt8]) {
        switch self {
        case .null: break
        case .integer(let number): buffer.append(bigEndian: number)
        case .boolean(let isTrue): buffer.append(isTrue ? 1 : 0)
        case .text(let text): buffer.append(contentsOf: text.utf8)
        case .bytes(let bytes): buffer.append(contentsOf: bytes)
        case .uuid(let key): buffer.append(bigEndian: key)
        case .smallIntegers(let numbers):
            Self.appendHeader(element: .int, count: numbers.count, to: &buffer)
            for number in numbers {
                buffer.append(bigEndian: Int32(4))
                buffer.append(bigEndian: number)
            }
        case .byteArrays(let arrays):
            Self.appendHeader(element: .bytea, count: arrays.count, to: &buffer)
            for bytes in arrays {
                buffer.append(bigEndian: bytes.map { Int32(clamping: $0.count) } ?? -1)
                buffer.append(contentsOf: bytes ?? [])
            }
        case .texts(let texts):
            Self.appendHeader(element: .text, count: texts.count, to: &buffer)
            for text in texts {
                buffer.append(bigEndian: Int32(clamping: text.utf8.count))
                buffer.append(contentsOf: text.utf8)
            }
        }
    }

    /// The object identifiers of element types, which PostgreSQL fixes (`pg_type.dat`).
    private enum ElementType: Int32 {
        case bytea = 17
        case int = 23
        case text = 25
    }

    /// Appends the header of an array, whose indices start at 1 (`array_recv`, which does not use
    /// the flag for NULLs).
    private static func appendHeader(element: ElementType, count: Int, to buffer: inout [UInt8]) {
        buffer.append(bigEndian: Int32(count == 0 ? 0 : 1))
        buffer.append(bigEndian: Int32(0))
        buffer.append(bigEndian: element.rawValue)
        guard count > 0 else { return }
        buffer.append(bigEndian: Int32(clamping: count))
        buffer.append(bigEndian: Int32(1))
    }
}

extension [PostgresValue] {
    /// Lends the values as libpq takes parameters: their number, addresses, lengths and formats.
    package func withBinaryParameters<Result>(
        _ body: (Int32, [UnsafePointer<CChar>?], [Int32], [Int32]) -> Result
    ) -> Result {
        var bytes: [UInt8] = []
        var offsets: [Int] = []
        for value in self {
            offsets.append(bytes.count)
            value.append(to: &bytes)
        }
        // An empty value needs an address as well: without one it would be NULL.
        bytes.append(0)
        let ends = offsets.dropFirst() + [bytes.count - 1]
        let lengths = zip(offsets, ends).map { Int32(clamping: $1 - $0) }
        let formats = [Int32](repeating: 1, count: offsets.count)
        return bytes.withUnsafeBytes { lent in
            // Sound: libpq copies the values before it returns, within the closure that lends them.
            let values = zip(self, offsets).map { value, offset -> UnsafePointer<CChar>? in
                guard value != .null else { return nil }
                return lent.baseAddress?.advanced(by: offset).assumingMemoryBound(to: CChar.self)
            }
            return body(Int32(clamping: count), values, lengths, formats)
        }
    }
}

extension [UInt8] {
    /// Appends the bytes of a number, the most significant first.
    fileprivate mutating func append(bigEndian number: some FixedWidthInteger) {
        // Sound: the bytes are copied within the closure that lends them.
        Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
    }
}
