import NIOHTTP1

package enum FieldName {
    package static let accept = "Accept"
    static let acceptEncoding = "Accept-Encoding"
    /// `Access-Control-…` (WHATWG Fetch, section 3.3).
    static let accessControlAllowHeaders = "Access-Control-Allow-Headers"
    static let accessControlAllowMethods = "Access-Control-Allow-Methods"
    static let accessControlAllowOrigin = "Access-Control-Allow-Origin"
    static let accessControlExposeHeaders = "Access-Control-Expose-Headers"
    static let accessControlMaxAge = "Access-Control-Max-Age"
    static let accessControlRequestMethod = "Access-Control-Request-Method"
    package static let allow = "Allow"
    package static let authorization = "Authorization"
    package static let cacheControl = "Cache-Control"
    static let connection = "Connection"
    static let contentEncoding = "Content-Encoding"
    static let contentLength = "Content-Length"
    package static let contentType = "Content-Type"
    package static let date = "Date"
    package static let eTag = "ETag"
    static let expect = "Expect"
    /// `Forwarded` (RFC 7239).
    static let forwarded = "Forwarded"
    package static let host = "Host"
    static let ifMatch = "If-Match"
    package static let ifNoneMatch = "If-None-Match"
    package static let origin = "Origin"
    /// `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).
    static let rateLimit = "RateLimit"
    static let rateLimitPolicy = "RateLimit-Policy"
    static let retryAfter = "Retry-After"
    /// `Sec-Fetch-Site` (W3C Fetch Metadata, section 2.2).
    package static let secFetchSite = "Sec-Fetch-Site"
    static let upgrade = "Upgrade"
    package static let vary = "Vary"
    /// `WebHook-…` (CloudEvents HTTP 1.1 Web Hooks for Event Delivery, section 4).
    static let webHookAllowedOrigin = "WebHook-Allowed-Origin"
    static let webHookAllowedRate = "WebHook-Allowed-Rate"
    static let webHookRequestOrigin = "WebHook-Request-Origin"
    static let webHookRequestRate = "WebHook-Request-Rate"
    static let wwwAuthenticate = "WWW-Authenticate"
    /// `Last-Event-ID` (WHATWG HTML, section 9.2.4).
    static let lastEventID = "Last-Event-ID"
    /// The cursor at which a response actually resumed.
    static let timelineCursor = "Timeline-Cursor"
    /// The digest of the registration in force, as known to the client or to the gateway.
    static let timelineRegistration = "Timeline-Registration"
    /// The sender of a request that another node of the cluster passes on.
    static let timelineSender = "Timeline-Sender"
    /// Keeps proxies from buffering an event stream.
    static let accelBuffering = "X-Accel-Buffering"
    /// `Prefer` (RFC 7240 section 2).
    static let prefer = "Prefer"
    /// `Preference-Applied` (RFC 7240 section 3).
    static let preferenceApplied = "Preference-Applied"
}

extension HTTPHeaders {
    /// A field's value; several fields of one name are one list (RFC 9110 section 5.3).
    func value(_ name: String) -> String? {
        var only: String?
        for field in self where field.name.isSameField(as: name) {
            guard only == nil else { return values(name).joined(separator: ", ") }
            only = field.value.fieldValue
        }
        return only
    }

    func values(_ name: String) -> [String] { self[name].map(\.fieldValue) }
}

extension String {
    /// Whether two field names, which are tokens (RFC 9110 section 5.1), are equal except for case.
    fileprivate func isSameField(as name: String) -> Bool {
        utf8.count == name.utf8.count && isField(beginningWith: name)
    }

    /// Whether a field name, which is a token, begins with the letters and hyphens in `name`,
    /// ignoring case.
    func isField(beginningWith name: String) -> Bool {
        var (own, name) = (self, name)
        // Sound: the pointers are read only within the closures that provide them. The bit equates
        // letters and hyphens with no other characters of a token.
        return own.withUTF8 { own in
            name.withUTF8 { name in
                own.count >= name.count
                    && name.indices.allSatisfy { own[$0] | 0x20 == name[$0] | 0x20 }
            }
        }
    }

    /// The text without surrounding white space, which is not part of a field's value (RFC 9110
    /// section 5.5).
    var fieldValue: String {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        guard let first = utf8.first, let last = utf8.last, isSpace(first) || isSpace(last) else {
            return self
        }
        let rest = utf8.drop(while: isSpace)
        guard let end = rest.lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(self[rest.startIndex...end])
    }
}
