/// The stored form: the number of bytes that follow, the version, the type, the app and the content.
/// Numbers of variable length are LEB128; a digest has 8 bytes, the least significant first; a text
/// begins with its count. A payload extends to the end.
extension LogRecord {
    /// The version of the form that this program writes, and the highest that it reads.
    package static let version: UInt8 = 1

    /// The reason why a record cannot be read.
    package enum Unreadable: Error, Equatable, Sendable {
        /// A newer program wrote it.
        case unknown(version: UInt8, type: UInt8)
        /// The bytes are no record.
        case damaged
    }

    private enum RecordType: UInt8 {
        case change = 1
        case catalog = 2
        case reload = 3
        case removal = 4
        case registration = 5
        case registrationRemoved = 6
        case addressesLost = 7
    }

    /// The flag of a change that has the name of its event.
    private static let eventFlag: UInt8 = 2

    private var type: RecordType {
        switch content {
        case .change: .change
        case .catalog: .catalog
        case .reload: .reload
        case .removal: .removal
        case .registration: .registration
        case .registrationRemoved: .registrationRemoved
        case .addressesLost: .addressesLost
        }
    }

    /// The stored form.
    package var encoded: [UInt8] {
        var body: [UInt8] = [Self.version, type.rawValue]
        body.append(text: app)
        switch content {
        case .change(let event, let payload):
            body.append(event == nil ? 0 : Self.eventFlag)
            if let event {
                body.append(text: event.source)
                body.append(text: event.id)
            }
            body += payload
        case .catalog(let payload), .reload(let payload): body += payload
        case .removal: break
        case .registration(let registration):
            body.append(client: registration.client, part: registration.part)
            body.append(number: UInt64(bitPattern: registration.revision))
            body.append(word: UInt64(bitPattern: registration.digest))
        case .registrationRemoved(let part, let client, let revision):
            body.append(client: client, part: part)
            body.append(number: UInt64(bitPattern: revision))
        case .addressesLost(let part, let client): body.append(client: client, part: part)
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(body.count + 3)
        bytes.append(number: UInt64(body.count))
        return bytes + body
    }

    /// Reads the records of a batch.
    ///
    /// - Throws: ``Unreadable`` for the first record that this program cannot read.
    package static func records(in bytes: [UInt8]) throws(Unreadable) -> [LogRecord] {
        var reader = RecordReader(bytes[...])
        var records: [LogRecord] = []
        while !reader.rest.isEmpty {
            let count = try reader.readNumber()
            var body = RecordReader(try reader.readBytes(count))
            records.append(try LogRecord(&body))
        }
        return records
    }

    private init(_ reader: inout RecordReader) throws(Unreadable) {
        let (version, number) = (try reader.readByte(), try reader.readByte())
        guard (1...Self.version).contains(version), let type = RecordType(rawValue: number) else {
            throw .unknown(version: version, type: number)
        }
        app = try reader.readText()
        switch type {
        case .change:
            let flags = try reader.readByte()
            guard flags & ~Self.eventFlag == 0 else {
                throw .unknown(version: version, type: number)
            }
            let event = flags & Self.eventFlag != 0 ? try reader.readEvent() : nil
            content = .change(event: event, payload: reader.readRest())
        case .catalog: content = .catalog(payload: reader.readRest())
        case .reload: content = .reload(scope: reader.readRest())
        case .removal: content = .removal
        case .registration:
            let (part, client) = try reader.readClient()
            content = .registration(
                Registration(
                    part: part, client: client,
                    revision: Int64(bitPattern: try reader.readNumber()),
                    digest: Int64(bitPattern: try reader.readWord())))
        case .registrationRemoved:
            let (part, client) = try reader.readClient()
            content = .registrationRemoved(
                part: part, client: client, revision: Int64(bitPattern: try reader.readNumber()))
        case .addressesLost:
            let (part, client) = try reader.readClient()
            content = .addressesLost(part: part, client: client)
        }
        guard reader.rest.isEmpty else { throw .damaged }
    }
}

/// Reads the parts of a record and never past its end.
private struct RecordReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func readByte() throws(LogRecord.Unreadable) -> UInt8 {
        guard let byte = rest.popFirst() else { throw .damaged }
        return byte
    }

    mutating func readNumber() throws(LogRecord.Unreadable) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            let byte = try readByte()
            // The tenth byte has room for one bit.
            guard shift < 63 || byte <= 1 else { throw .damaged }
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return number }
        }
        throw .damaged
    }

    mutating func readBytes(_ count: UInt64) throws(LogRecord.Unreadable) -> ArraySlice<UInt8> {
        guard count <= UInt64(rest.count) else { throw .damaged }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }

    mutating func readRest() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }

    mutating func readWord() throws(LogRecord.Unreadable) -> UInt64 {
        try readBytes(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    mutating func readText() throws(LogRecord.Unreadable) -> String {
        String(decoding: try readBytes(try readNumber()), as: UTF8.self)
    }

    mutating func readClient() throws(LogRecord.Unreadable) -> (part: Int16, client: String) {
        guard let part = Int16(exactly: try readNumber()) else { throw .damaged }
        return (part, try readText())
    }

    mutating func readEvent() throws(LogRecord.Unreadable) -> LogRecord.Event {
        LogRecord.Event(source: try readText(), id: try readText())
    }
}

extension [UInt8] {
    /// Appends a number in LEB128.
    fileprivate mutating func append(number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }

    /// Appends 8 bytes, the least significant first.
    fileprivate mutating func append(word: UInt64) {
        // Sound: the bytes are copied within the closure that lends them.
        Swift.withUnsafeBytes(of: word.littleEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func append(text: String) {
        append(number: UInt64(text.utf8.count))
        append(contentsOf: text.utf8)
    }

    fileprivate mutating func append(client: String, part: Int16) {
        append(number: UInt64(UInt16(bitPattern: part)))
        append(text: client)
    }
}
