/// A block of a `text/event-stream` (WHATWG HTML, section 9.2), as received by a client.
public struct ServerSentEvent: Sendable, Equatable {
    /// The last event id after this block; `nil` when none was sent yet or it was reset.
    public var id: String?
    /// The event's name; `message` when the block has none. `nil` for a block without data.
    public var event: String?
    /// The data lines joined with line feeds. `nil` for a block that only sets the id.
    public var data: String?

    /// Creates a block.
    public init(id: String? = nil, event: String? = nil, data: String? = nil) {
        self.id = id
        self.event = event
        self.data = data
    }
}

/// Encodes the blocks that this project sends. Ids, names and data never contain line breaks (a
/// cursor, a constant, a compact JWS), so no escaping is needed.
public enum EventStreamEncoder {
    /// The media type of a stream.
    public static let mediaType = "text/event-stream"

    /// Returns a `reload` event; with `id` it also advances the reader's cursor.
    public static func reload(id: String?, notification: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(notification.count + 64)
        if let id { append(id: id, to: &bytes) }
        bytes.append(contentsOf: "event: reload\ndata: ".utf8)
        bytes.append(contentsOf: notification)
        bytes.append(contentsOf: "\n\n".utf8)
        return bytes
    }

    /// Returns a block that only advances the reader's cursor, without an event.
    public static func heartbeat(id: String) -> [UInt8] {
        var bytes: [UInt8] = []
        append(id: id, to: &bytes)
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    /// Returns a block that sets the reader's reconnection time, ms.
    public static func retry(milliseconds: Int) -> [UInt8] {
        Array("retry: \(milliseconds)\n\n".utf8)
    }

    private static func append(id: String, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "id: ".utf8)
        bytes.append(contentsOf: id.utf8)
        bytes.append(UInt8(ascii: "\n"))
    }
}

/// Parses a `text/event-stream` in pieces of any size.
///
/// Accepts all three line endings, a leading byte order mark, and pieces that end anywhere. A line
/// longer than the limit ends the stream, because a peer must not choose how much memory is used.
public struct EventStreamParser: Sendable {
    /// The reason why a stream cannot be read further.
    public enum Failure: Error, Sendable, Equatable {
        /// One line or one event's data is longer than the limit.
        case tooLong(limit: Int)
    }

    /// The limit of a line and of one event's data, bytes.
    public let bytesMax: Int
    /// The last reconnection time that the stream requested, ms.
    public private(set) var retry: Int?

    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var event = ""
    private var pendingID: String?
    private var hasPendingID = false
    private var lastID: String?
    private var lastWasCarriageReturn = false
    private var isAtStart = true

    /// Creates a parser at the start of a stream.
    public init(bytesMax: Int = 1024 * 1024) {
        self.bytesMax = bytesMax
    }

    /// Parses the next bytes and returns the blocks they complete: events, and blocks without data
    /// that changed the last event id.
    ///
    /// - Throws: ``Failure``. The rest of the stream cannot be parsed.
    public mutating func parse(
        _ bytes: some Sequence<UInt8>
    ) throws(Failure) -> [ServerSentEvent] {
        var blocks: [ServerSentEvent] = []
        for byte in bytes {
            if lastWasCarriageReturn {
                lastWasCarriageReturn = false
                if byte == 0x0A { continue }
            }
            switch byte {
            case 0x0A:
                try endLine(&blocks)
            case 0x0D:
                lastWasCarriageReturn = true
                try endLine(&blocks)
            default:
                guard line.count < bytesMax else { throw .tooLong(limit: bytesMax) }
                line.append(byte)
            }
        }
        return blocks
    }

    private mutating func endLine(_ blocks: inout [ServerSentEvent]) throws(Failure) {
        if isAtStart {
            isAtStart = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        }
        defer { line.removeAll(keepingCapacity: true) }
        guard !line.isEmpty else {
            endBlock(&blocks)
            return
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
            try field(String(decoding: line, as: UTF8.self), [])
            return
        }
        guard colon > 0 else { return }
        var value = line[(colon + 1)...]
        if value.first == 0x20 { value = value.dropFirst() }
        try field(String(decoding: line[..<colon], as: UTF8.self), value)
    }

    private mutating func field(_ name: String, _ value: ArraySlice<UInt8>) throws(Failure) {
        switch name {
        case "data":
            guard data.count + value.count < bytesMax else { throw .tooLong(limit: bytesMax) }
            if hasData { data.append(0x0A) }
            data.append(contentsOf: value)
            hasData = true
        case "event":
            event = String(decoding: value, as: UTF8.self)
        case "id":
            guard !value.contains(0) else { return }
            pendingID = value.isEmpty ? nil : String(decoding: value, as: UTF8.self)
            hasPendingID = true
        case "retry":
            let digits = value.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
            if digits, let time = Int(String(decoding: value, as: UTF8.self)) { retry = time }
        default:
            break
        }
    }

    private mutating func endBlock(_ blocks: inout [ServerSentEvent]) {
        let moved = hasPendingID && pendingID != lastID
        if hasPendingID { lastID = pendingID }
        if hasData {
            blocks.append(
                ServerSentEvent(
                    id: lastID, event: event.isEmpty ? "message" : event,
                    data: String(decoding: data, as: UTF8.self)))
        } else if moved {
            blocks.append(ServerSentEvent(id: lastID))
        }
        data.removeAll(keepingCapacity: true)
        hasData = false
        event = ""
        hasPendingID = false
        pendingID = nil
    }
}
