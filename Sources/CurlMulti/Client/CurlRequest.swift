import CCurl

package struct CurlRequest: Sendable {
    package var method: String
    /// `https://`, a host, and a port unless it is 443. `http://` is rejected unless
    /// ``CurlClient/Configuration/allowsPlainText`` is set.
    package var origin: String
    /// Path and query, beginning with a slash.
    package var target: String
    /// The header fields, which many requests may share.
    package var fields: CurlFields
    /// The body, up to ``CurlClient/Configuration/bodyBytesMax`` bytes.
    package var body: [UInt8]?
    /// The longest time from the client's acceptance to the end of the response, including
    /// connecting, but not the wait for room in the client; `nil` for no limit.
    package var timeout: Duration?
    /// The longest time without a byte of the response; `nil` for no limit. Time in which the
    /// receiver does not accept more does not count.
    package var silenceTimeout: Duration?
    /// The address to connect to instead of resolving the name, an IPv6 address in brackets.
    /// Certificates are still checked against the name.
    package var address: String?
    /// Whether the request gets a connection of its own, over HTTP/1.1.
    package var isIsolated = false

    package init(
        _ method: String, origin: String, target: String, fields: CurlFields,
        body: [UInt8]? = nil, timeout: Duration?
    ) {
        self.method = method
        self.origin = origin
        self.target = target
        self.fields = fields
        self.body = body
        self.timeout = timeout
    }
}

/// Header fields in libcurl's format, made once for many requests.
package final class CurlFields: @unchecked Sendable {
    // Sound: the list is not changed after `init`, libcurl only reads it, and requests hold this
    // object as long as libcurl holds the list.
    let list: UnsafeMutablePointer<curl_slist>?

    /// Creates fields with these names and values; HTTP itself adds its own. A field with an empty
    /// value is not sent.
    ///
    /// - Throws: ``CurlError``: `badRequest` for an invalid name or value, `noMemory`.
    package init(_ fields: [(name: String, value: String)]) throws(CurlError) {
        var list: UnsafeMutablePointer<curl_slist>?
        var lines: [String] = []
        for (name, value) in fields {
            let isName = name.utf8.allSatisfy {
                (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":")
            }
            let isValue = value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
            guard isName, !name.isEmpty, isValue else {
                throw CurlError(.badRequest, "\(name) or its value is not a valid header field")
            }
            lines.append("\(name): \(value)")
        }
        // By default libcurl would add these: its own type for the body, the types that it accepts,
        // and the expectation of `100 Continue`, which it would wait for.
        for name in ["content-type", "accept", "expect"]
        where !fields.contains(where: { $0.name.lowercased() == name }) {
            lines.append("\(name):")
        }
        for line in lines {
            guard let longer = curl_slist_append(list, line) else {
                curl_slist_free_all(list)
                throw CurlError(.noMemory, "no memory for header fields")
            }
            list = longer
        }
        self.list = list
    }

    deinit {
        curl_slist_free_all(list)
    }
}
