/// One block of a `text/event-stream` (WHATWG HTML, section 9.2), as a client sees it.
public struct ServerSentEvent: Sendable, Equatable {
    /// The last event id in force after this block; `nil` when none was ever sent or it was reset.
    public var id: String?
    /// The event's name; `message` when the block named none. `nil` for a block without data.
    public var event: String?
    /// The data lines joined with line feeds. `nil` for a block that only moved the id.
    public var data: String?

    /// A block, as a test states it.
    public init(id: String? = nil, event: String? = nil, data: String? = nil) {
        self.id = id
        self.event = event
        self.data = data
    }
}

/// Writes the blocks this project sends. Ids, names and data contain no line ends by
/// construction (a cursor, a constant, a compact JWS), so nothing needs splitting here.
public enum EventStreamEncoder {
    /// The media type of a stream.
    public static let mediaType = "text/event-stream"

    /// A `reload` event; with `id` it also moves the reader's cursor.
    public static func reload(id: String?, notification: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(notification.count + 64)
        if let id { append(id: id, to: &bytes) }
        bytes.append(contentsOf: "event: reload\ndata: ".utf8)
        bytes.append(contentsOf: notification)
        bytes.append(contentsOf: "\n\n".utf8)
        return bytes
    }

    /// A block that only moves the reader's cursor; no event is dispatched for it.
    public static func heartbeat(id: String) -> [UInt8] {
        var bytes: [UInt8] = []
        append(id: id, to: &bytes)
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    /// Tells the reader how long to wait before it reconnects, in milliseconds.
    public static func retry(milliseconds: Int) -> [UInt8] {
        Array("retry: \(milliseconds)\n\n".utf8)
    }

    private static func append(id: String, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "id: ".utf8)
        bytes.append(contentsOf: id.utf8)
        bytes.append(UInt8(ascii: "\n"))
    }
}

/// Reads a `text/event-stream` in pieces of any size.
///
/// Accepts all three line ends, one leading byte order mark, and lines cut anywhere. A line longer
/// than the limit ends the stream: a peer must not choose how much we keep.
public struct EventStreamParser: Sendable {
    /// Why a stream cannot be read further.
    public enum Failure: Error, Sendable, Equatable {
        /// One line or one event's data is longer than the limit.
        case tooLong(limit: Int)
    }

    /// Longest line and longest data of one event, in bytes.
    public let bytesMax: Int
    /// The reconnection time last asked for, in milliseconds.
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

    /// A parser at the start of a stream.
    public init(bytesMax: Int = 1024 * 1024) {
        self.bytesMax = bytesMax
    }

    /// Takes the next bytes and returns the blocks they complete: events, and id-only blocks that
    /// moved the last event id.
    ///
    /// - Throws: ``Failure``; what comes after it cannot be read.
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
