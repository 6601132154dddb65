import NIOHTTP1
import WidgetModel

extension HTTPRequestHead {
    /// The reason to refuse a request, whatever it asks for; `nil` without any.
    func problem(isHTTP2: Bool, _ settings: ConnectionSettings) -> ProblemDetails? {
        if headers.count > settings.headerFieldsMax { return Problem.headersTooLarge }
        var path = uri
        // Sound: the pointer is read within the closure that lends it.
        if !path.withUTF8({ $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }) {
            return Problem.malformed("The request target must be percent-encoded ASCII.")
        }
        let hosts = headers.values(FieldName.host)
        // Before HTTP/1.1 there was none.
        if hosts.first?.isEmpty ?? (version != .http1_0) {
            return Problem.malformed("The request has no Host (RFC 9112 section 3.2).")
        }
        if !isHTTP2, hosts.count > 1 {
            // Two servers could disagree on which.
            return Problem.malformed("The request has more than one Host (RFC 9112 section 3.2).")
        }
        return nil
    }
}
