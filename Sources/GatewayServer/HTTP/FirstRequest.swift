import HTTPTypes
import NIOCore

/// Reads the plainest of requests: a whole `GET` head of HTTP/1.1 with nothing behind it.
///
/// It is the short way in for event streams, of which one gateway opens very many at a time. It
/// answers `nil` to everything it has the least doubt about, and then the HTTP decoder reads the
/// same bytes: whatever this accepts must mean the same to both (RFC 9112 sections 2 to 5).
enum FirstRequest {
    /// Fields that change how a message is read or answered; the decoder knows how.
    private static let foreign: Set<String> = [
        "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te", "trailer",
    ]

    static func read(_ buffer: ByteBuffer, _ settings: ConnectionSettings) -> HTTPRequest? {
        guard buffer.readableBytes <= settings.headerBytesMax else { return nil }
        return buffer.withUnsafeReadableBytes { read($0, fieldsMax: settings.headerFieldsMax) }
    }

    private static func read(_ bytes: UnsafeRawBufferPointer, fieldsMax: Int) -> HTTPRequest? {
        var lines = Lines(rest: bytes[...])
        guard let requestLine = lines.next(), requestLine.starts(with: "GET ".utf8),
            requestLine.suffix(9).elementsEqual(" HTTP/1.1".utf8), requestLine.count > 13
        else { return nil }
        let target = requestLine.dropFirst(4).dropLast(9)
        guard target.first == UInt8(ascii: "/"), target.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        var fields = HTTPFields()
        var host: String?
        while let line = lines.next() {
            if line.isEmpty {
                guard lines.rest.isEmpty, let host else { return nil }
                return HTTPRequest(
                    method: .get, scheme: "https", authority: host, path: text(target),
                    headerFields: fields)
            }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), fields.count < fieldsMax,
                let name = HTTPField.Name(text(line[..<colon])),
                !foreign.contains(name.canonicalName),
                let value = value(line[(colon + 1)...])
            else { return nil }
            if name.canonicalName == "host" {
                guard host == nil, !value.isEmpty else { return nil }
                host = value
            } else {
                fields.append(HTTPField(name: name, value: value))
            }
        }
        return nil
    }

    /// A field's value without the white space around it; `nil` for anything but plain ASCII.
    private static func value(_ bytes: Slice<UnsafeRawBufferPointer>) -> String? {
        guard bytes.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 < 0x7F) }) else { return nil }
        let start = bytes.firstIndex { !isBlank($0) } ?? bytes.endIndex
        let end = bytes.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? start
        return text(bytes[start..<end])
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        String(decoding: UnsafeRawBufferPointer(rebasing: bytes), as: UTF8.self)
    }

    /// Lines that end with CRLF.
    private struct Lines {
        var rest: Slice<UnsafeRawBufferPointer>

        mutating func next() -> Slice<UnsafeRawBufferPointer>? {
            guard let feed = rest.firstIndex(of: 0x0A), feed > rest.startIndex,
                rest[feed - 1] == 0x0D
            else { return nil }
            let line = rest[..<(feed - 1)]
            rest = rest[(feed + 1)...]
            return line
        }
    }
}
