import Foundation

/// A change of a store that the other stores of a cluster repeat: equal stores that repeat the same
/// operations in the same order stay equal.
package enum StoreOperation: Sendable, Equatable {
    case append(LogRow)
    case putCatalog(CatalogRow)
    case deleteApp(String)
    case putRegistration(RegistrationRow, attributes: [String: [String]], isSeen: Bool)
    case deleteRegistration(RegistrationKey)
    /// A client was seen, at a time in milliseconds since 1970.
    case touch(RegistrationKey, at: Int64)
    case putPushClient(PushClientRow)
    case appendPushAttempt(PushAttemptRow)
    /// The arguments of ``StoreTransaction/prunePushAttempts(endedBefore:keepRows:limit:)``.
    case prunePushAttempts(endedBefore: Int64, keepRows: Int64, limit: Int64)
    /// Rows of the log were removed.
    case prune(upTo: UInt64)
    case putProviderToken(ProviderTokenRow)
    case openEpoch(EpochRow, voidsOlder: Bool, kept: Int64)
    /// A value was stored under a key; `nil` removed it.
    case setMeta(String, Data?)

    /// The mark that an epoch sets which voids older ones.
    package static var voidsPositions: Self {
        .setMeta(SQLiteStore.voidPositions, SQLiteStore.isVoid)
    }
}

/// The stored form: a list of operations, each as the number of its bytes, its type and its fields.
/// Numbers are LEB128, those with a sign as their bit pattern; a text or bytes begin with their
/// count; an optional field with 0 or 1.
extension StoreOperation {
    private enum Kind: UInt8 {
        case append = 1
        case putCatalog, deleteApp, putRegistration, deleteRegistration, touch
        case putPushClient, appendPushAttempt, prunePushAttempts
        case prune, putProviderToken, openEpoch, setMeta
    }

    /// Appends the stored form.
    package func append(to bytes: inout [UInt8]) {
        var body: [UInt8] = []
        body.reserveCapacity(256)
        encode(into: &body)
        bytes.append(number: UInt64(body.count))
        bytes += body
    }

    private func encode(into body: inout [UInt8]) {
        switch self {
        case .append(let row):
            body.append(Kind.append.rawValue)
            body.append(number: row.sequence)
            body.append(text: row.app)
            body.append(number: UInt64(row.type.rawValue))
            body.append(optional: row.source) { $0.append(text: $1) }
            body.append(optional: row.eventID) { $0.append(text: $1) }
            body.append(signed: row.acceptedAt)
            body.append(data: row.payload)
        case .putCatalog(let row):
            body.append(Kind.putCatalog.rawValue)
            body.append(text: row.app)
            body.append(number: row.sequence)
            body.append(data: row.payload)
        case .deleteApp(let app):
            body.append(Kind.deleteApp.rawValue)
            body.append(text: app)
        case .putRegistration(let row, let attributes, let isSeen):
            body.append(Kind.putRegistration.rawValue)
            body.append(key: row.key)
            body.append(data: row.payload)
            body.append(signed: row.updatedAt)
            body.append(signed: row.seenAt)
            body.append(isSeen ? 1 : 0)
            body.append(number: UInt64(attributes.count))
            for (name, values) in attributes.sorted(by: { $0.key < $1.key }) {
                body.append(text: name)
                body.append(number: UInt64(values.count))
                for value in values { body.append(text: value) }
            }
        case .deleteRegistration(let key):
            body.append(Kind.deleteRegistration.rawValue)
            body.append(key: key)
        case .touch(let key, let at):
            body.append(Kind.touch.rawValue)
            body.append(key: key)
            body.append(signed: at)
        case .putPushClient(let row):
            body.append(Kind.putPushClient.rawValue)
            body.append(key: row.key)
            body.append(optional: row.payload) { $0.append(data: $1) }
        case .appendPushAttempt(let row):
            body.append(Kind.appendPushAttempt.rawValue)
            body.append(signed: row.number)
            body.append(signed: row.at)
            body.append(key: row.key)
            body.append(text: row.channel)
            body.append(text: row.outcome)
            body.append(optional: row.reason) { $0.append(text: $1) }
            body.append(optional: row.reference) { $0.append(text: $1) }
            body.append(signed: row.milliseconds)
            body.append(optional: row.sequence) { $0.append(number: $1) }
            body.append(optional: row.cause) { $0.append(text: $1) }
        case .prunePushAttempts(let endedBefore, let keepRows, let limit):
            body.append(Kind.prunePushAttempts.rawValue)
            for number in [endedBefore, keepRows, limit] { body.append(signed: number) }
        case .prune(let sequence):
            body.append(Kind.prune.rawValue)
            body.append(number: sequence)
        case .putProviderToken(let row):
            body.append(Kind.putProviderToken.rawValue)
            body.append(text: row.issuer)
            body.append(signed: row.issuedAt)
            body.append(text: row.token)
        case .openEpoch(let row, let voidsOlder, let kept):
            body.append(Kind.openEpoch.rawValue)
            body.append(signed: row.ordinal)
            body.append(number: row.id)
            body.append(number: row.openedAtSequence)
            body.append(signed: row.openedAt)
            body.append(voidsOlder ? 1 : 0)
            body.append(signed: kept)
        case .setMeta(let key, let value):
            body.append(Kind.setMeta.rawValue)
            body.append(text: key)
            body.append(optional: value) { $0.append(data: $1) }
        }
    }

    /// Reads a list of operations.
    ///
    /// - Throws: `StoreError.newerVersion` for an operation that this program does not know,
    ///   `corrupt` for bytes that are no list.
    package static func list(_ bytes: [UInt8]) throws(StoreError) -> [StoreOperation] {
        var reader = OperationReader(bytes[...])
        var list: [StoreOperation] = []
        while !reader.rest.isEmpty {
            var body = OperationReader(try reader.bytes())
            list.append(try StoreOperation(&body))
            guard body.rest.isEmpty else { throw OperationReader.damaged }
        }
        return list
    }

    private init(_ reader: inout OperationReader) throws(StoreError) {
        guard let kind = Kind(rawValue: try reader.byte()) else { throw .newerVersion }
        switch kind {
        case .append:
            let (sequence, app) = (try reader.number(), try reader.text())
            guard let type = LogEntryType(rawValue: Int(clamping: try reader.number())) else {
                throw .newerVersion
            }
            self = .append(
                LogRow(
                    sequence: sequence, app: app, type: type, source: try reader.optionalText(),
                    eventID: try reader.optionalText(), acceptedAt: try reader.signed(),
                    payload: try reader.data()))
        case .putCatalog:
            self = .putCatalog(
                CatalogRow(
                    app: try reader.text(), sequence: try reader.number(),
                    payload: try reader.data()))
        case .deleteApp: self = .deleteApp(try reader.text())
        case .putRegistration:
            let (key, payload) = (try reader.key(), try reader.data())
            let (updatedAt, seenAt) = (try reader.signed(), try reader.signed())
            let isSeen = try reader.flag()
            var attributes: [String: [String]] = [:]
            for _ in 0..<(try reader.number()) {
                let name = try reader.text()
                var values: [String] = []
                for _ in 0..<(try reader.number()) { values.append(try reader.text()) }
                attributes[name] = values
            }
            self = .putRegistration(
                RegistrationRow(
                    key: key, payload: payload, updatedAt: updatedAt, seenAt: seenAt),
                attributes: attributes, isSeen: isSeen)
        case .deleteRegistration: self = .deleteRegistration(try reader.key())
        case .touch: self = .touch(try reader.key(), at: try reader.signed())
        case .putPushClient:
            let key = try reader.key()
            self = .putPushClient(
                PushClientRow(key: key, payload: try reader.flag() ? try reader.data() : nil))
        case .appendPushAttempt:
            self = .appendPushAttempt(
                PushAttemptRow(
                    number: try reader.signed(), at: try reader.signed(), key: try reader.key(),
                    channel: try reader.text(), outcome: try reader.text(),
                    reason: try reader.optionalText(), reference: try reader.optionalText(),
                    milliseconds: try reader.signed(),
                    sequence: try reader.flag() ? try reader.number() : nil,
                    cause: try reader.optionalText()))
        case .prunePushAttempts:
            self = .prunePushAttempts(
                endedBefore: try reader.signed(), keepRows: try reader.signed(),
                limit: try reader.signed())
        case .prune: self = .prune(upTo: try reader.number())
        case .putProviderToken:
            self = .putProviderToken(
                ProviderTokenRow(
                    issuer: try reader.text(), issuedAt: try reader.signed(),
                    token: try reader.text()))
        case .openEpoch:
            let row = EpochRow(
                ordinal: try reader.signed(), id: try reader.number(),
                openedAtSequence: try reader.number(), isVoid: false,
                openedAt: try reader.signed())
            self = .openEpoch(row, voidsOlder: try reader.flag(), kept: try reader.signed())
        case .setMeta:
            let key = try reader.text()
            self = .setMeta(key, try reader.flag() ? try reader.data() : nil)
        }
    }
}

/// Reads the fields of operations, and never past their end.
private struct OperationReader {
    static let damaged = StoreError.corrupt(reason: "an operation of the log is damaged")

    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func byte() throws(StoreError) -> UInt8 {
        guard let byte = rest.popFirst() else { throw Self.damaged }
        return byte
    }

    mutating func flag() throws(StoreError) -> Bool { try byte() != 0 }

    mutating func number() throws(StoreError) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            let byte = try byte()
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return number }
        }
        throw Self.damaged
    }

    mutating func signed() throws(StoreError) -> Int64 { Int64(bitPattern: try number()) }

    mutating func bytes() throws(StoreError) -> ArraySlice<UInt8> {
        let count = try number()
        guard count <= UInt64(rest.count) else { throw Self.damaged }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }

    mutating func data() throws(StoreError) -> Data { Data(try bytes()) }

    mutating func text() throws(StoreError) -> String {
        String(decoding: try bytes(), as: UTF8.self)
    }

    mutating func optionalText() throws(StoreError) -> String? { try flag() ? try text() : nil }

    mutating func key() throws(StoreError) -> RegistrationKey {
        RegistrationKey(app: try text(), client: try text())
    }
}

extension [UInt8] {
    fileprivate mutating func append(number: UInt64) {
        var number = number
        while number >= 0x80 {
            append(UInt8(truncatingIfNeeded: number) | 0x80)
            number >>= 7
        }
        append(UInt8(truncatingIfNeeded: number))
    }

    fileprivate mutating func append(signed number: Int64) {
        append(number: UInt64(bitPattern: number))
    }

    fileprivate mutating func append(text: String) {
        append(number: UInt64(text.utf8.count))
        append(contentsOf: text.utf8)
    }

    fileprivate mutating func append(data: Data) {
        append(number: UInt64(data.count))
        append(contentsOf: data)
    }

    fileprivate mutating func append(key: RegistrationKey) {
        append(text: key.app)
        append(text: key.client)
    }

    fileprivate mutating func append<Value>(
        optional value: Value?, _ body: (inout [UInt8], Value) -> Void
    ) {
        append(value == nil ? 0 : 1)
        if let value { body(&self, value) }
    }
}
