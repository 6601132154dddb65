import NIOHTTP1
import WidgetModel

extension HTTPRequestHead {
    /// The reason to reject a request, independent of its route; `nil` if there is none.
    func problem(isHTTP2: Bool, _ settings: ConnectionSettings) -> ProblemDetails? {
        if headers.count > settings.headerFieldsMax { return Problem.headersTooLarge }
        // The decoder of HTTP/1.1 has the same limit.
        if isHTTP2, fieldSectionBytes > settings.headerBytesMax { return Problem.headersTooLarge }
        var path = uri
        // Sound: the pointer is read only within the closure that provides it.
        if !path.withUTF8({ $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }) {
            return Problem.malformed("The request target must be percent-encoded ASCII.")
        }
        let hosts = headers.values(FieldName.host)
        // Before HTTP/1.1 the field did not exist.
        if hosts.first?.isEmpty ?? (version != .http1_0) {
            return Problem.malformed("The request has no Host (RFC 9112 section 3.2).")
        }
        if !isHTTP2, hosts.count > 1 {
            // Two servers could disagree on which one counts.
            return Problem.malformed("The request has more than one Host (RFC 9112 section 3.2).")
        }
        return nil
    }

    /// The size of all header fields, as HTTP/2 defines it (RFC 9113 section 6.5.2), without some
    /// of the overhead of the pseudo-header fields.
    private var fieldSectionBytes: Int {
        headers.reduce(uri.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    }
}
