import NIOHTTP1

/// Entity tags, the names of versions of a representation (RFC 9110 section 8.8.3).
package enum EntityTag {
    /// Returns a tag that differs whenever the bytes do. It identifies versions of one document; it
    /// does not resist whoever chooses the bytes.
    package static func tag(of bytes: some Sequence<UInt8>) -> String {
        // FNV-1a.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "\"" + String(hash, radix: 16) + "\""
    }

    /// Whether the field `If-None-Match` lists a tag, by weak comparison, or is `*` (RFC 9110
    /// section 13.1.2). Text outside quotation marks is ignored.
    static func isListed(_ tag: String, in field: String) -> Bool {
        let quote = UInt8(ascii: "\"")
        guard field.fieldValue != "*" else { return true }
        guard let start = tag.utf8.firstIndex(of: quote) else { return false }
        let wanted = tag.utf8[start...]
        var rest = Substring(field).utf8
        while let start = rest.firstIndex(of: quote) {
            let opaque = rest[rest.index(after: start)...]
            guard let end = opaque.firstIndex(of: quote) else { return false }
            if rest[start...end].elementsEqual(wanted) { return true }
            rest = rest[rest.index(after: end)...]
        }
        return false
    }
}

extension RouteResponse {
    /// The fields that a response without the representation repeats (RFC 9110 section 15.4.5).
    private static let fieldsOfKnown = [FieldName.eTag, FieldName.cacheControl, FieldName.vary]

    /// Turns the response to `GET` or `HEAD` into 304 if the client has the representation, as the
    /// `request`'s fields say.
    mutating func omitKnown(_ request: HTTPHeaders) {
        guard head.status == .ok, let tag = head.headers.value(FieldName.eTag),
            let known = request.value(FieldName.ifNoneMatch), EntityTag.isListed(tag, in: known)
        else { return }
        var headers = HTTPHeaders()
        for name in Self.fieldsOfKnown {
            if let value = head.headers.value(name) { headers.add(name: name, value: value) }
        }
        self = RouteResponse(.notModified, headers: headers)
    }
}
