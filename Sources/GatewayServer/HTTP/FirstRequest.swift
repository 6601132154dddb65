import Foundation
import NIOCore
import WidgetModel

/// Reads the simplest requests: a complete `GET` head of HTTP/1.1 with nothing after it.
///
/// An accepting thread admits event streams by it, so that their connections never get a channel.
/// Whatever this accepts must mean the same to the HTTP decoder (RFC 9112 sections 2 to 5): in the
/// least doubt it returns `nil`, and the decoder reads the same bytes. Reading another `GET` in
/// vain costs 0.5 µs, anything else 0.01 µs; a handshake takes 0.4 ms.
enum FirstRequest {
    /// Fields that change how a message is read or answered; only the decoder handles them.
    private static let foreign: [StaticString] = [
        "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te", "trailer",
        "origin",
    ]

    static func read(_ buffer: ByteBuffer, _ settings: ConnectionSettings) -> ReloadsRequest? {
        guard buffer.readableBytes <= settings.headerBytesMax else { return nil }
        return buffer.withUnsafeReadableBytes { read($0, fieldsMax: settings.headerFieldsMax) }
    }

    private static func read(_ bytes: UnsafeRawBufferPointer, fieldsMax: Int) -> ReloadsRequest? {
        var lines = Lines(rest: bytes)
        guard let requestLine = lines.next(), let path = path(requestLine) else { return nil }
        var fields = Fields()
        var left = fieldsMax
        while let line = lines.next() {
            if line.isEmpty {
                guard lines.rest.isEmpty, fields.host != nil else { return nil }
                return ReloadsRequest(
                    path: path, authorization: fields.authorization.map(text),
                    lastEventID: fields.lastEventID.map(text),
                    registration: fields.registration.map(text),
                    wantsStream: fields.wantsStream)
            }
            left -= 1
            guard left >= 0, fields.take(line) else { return nil }
        }
        return nil
    }

    /// The origin-form target of a request line (RFC 9112 section 3).
    private static func path(_ line: UnsafeRawBufferPointer) -> String? {
        guard line.count > 13, line.starts(with: "GET /".utf8),
            line.suffix(9).elementsEqual(" HTTP/1.1".utf8)
        else { return nil }
        let target = UnsafeRawBufferPointer(rebasing: line[4..<(line.count - 9)])
        for byte in target where byte <= 0x20 || byte >= 0x7F { return nil }
        return text(target)
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    /// The relevant fields, by value.
    private struct Fields {
        var host: UnsafeRawBufferPointer?
        var authorization: UnsafeRawBufferPointer?
        var lastEventID: UnsafeRawBufferPointer?
        var registration: UnsafeRawBufferPointer?
        var wantsStream = false

        /// Reads a field's line; returns whether it is unambiguous.
        mutating func take(_ line: UnsafeRawBufferPointer) -> Bool {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
                return false
            }
            let name = UnsafeRawBufferPointer(rebasing: line[..<colon])
            for byte in name where !FirstRequest.isTokenByte(byte) { return false }
            let rest = UnsafeRawBufferPointer(rebasing: line[(colon + 1)...])
            guard let value = FirstRequest.value(rest) else { return false }
            switch name.count {
            case 4 where FirstRequest.isName(name, "host"):
                return !value.isEmpty && Self.set(&host, value)
            case 6 where FirstRequest.isName(name, "accept"):
                let accept = FirstRequest.text(value)
                wantsStream = wantsStream || ReloadsRequest.acceptsEventStream(accept)
                return true
            case 13 where FirstRequest.isName(name, "authorization"):
                return Self.set(&authorization, value)
            case 13 where FirstRequest.isName(name, "last-event-id"):
                return Self.set(&lastEventID, value)
            case 21 where FirstRequest.isName(name, "timeline-registration"):
                return Self.set(&registration, value)
            default: return !FirstRequest.foreign.contains { FirstRequest.isName(name, $0) }
            }
        }

        /// Sets a field; returns whether it is unambiguous, that is, not repeated.
        private static func set(
            _ field: inout UnsafeRawBufferPointer?, _ value: UnsafeRawBufferPointer
        ) -> Bool {
            defer { field = value }
            return field == nil
        }
    }

    /// Whether a name equals `expected`, which is in lower case, ignoring case.
    private static func isName(_ name: UnsafeRawBufferPointer, _ expected: StaticString) -> Bool {
        guard name.count == expected.utf8CodeUnitCount else { return false }
        for index in name.indices {
            let byte = name[index]
            let isUpper = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
            if (isUpper ? byte | 0x20 : byte) != expected.utf8Start[index] { return false }
        }
        return true
    }

    /// Whether a byte may be part of a token (RFC 9110 section 5.6.2).
    static func isTokenByte(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || "-_!#$%&'*+.^`|~".utf8.contains(byte)
    }

    /// A field's value without surrounding white space; `nil` for anything but plain ASCII.
    private static func value(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        for byte in bytes where (byte < 0x20 && byte != 0x09) || byte >= 0x7F { return nil }
        var (start, end) = (0, bytes.count)
        while start < end, isBlank(bytes[start]) { start += 1 }
        while end > start, isBlank(bytes[end - 1]) { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Lines that end with CRLF.
    private struct Lines {
        var rest: UnsafeRawBufferPointer

        mutating func next() -> UnsafeRawBufferPointer? {
            guard let base = rest.baseAddress, let feed = memchr(base, 0x0A, rest.count) else {
                return nil
            }
            let end = UnsafeRawPointer(feed) - base
            guard end > 0, rest[end - 1] == 0x0D else { return nil }
            let line = UnsafeRawBufferPointer(rebasing: rest[..<(end - 1)])
            rest = UnsafeRawBufferPointer(rebasing: rest[(end + 1)...])
            return line
        }
    }
}
