import CCurl
import GatewayCore

/// One `POST`, as an engine sends it.
package struct DeliveryRequest: Sendable {
    /// Where to: `https://`, a host, and a port unless it is 443. Nothing after that. `http://` is
    /// refused unless ``DeliveryEngine/Configuration/allowsPlainText`` is set.
    package var origin: String
    /// Path and query, beginning with a slash.
    package var target: String
    /// The header fields, which many requests may share.
    package var fields: DeliveryFields
    /// The body, up to ``bodyBytesMax`` bytes.
    package var body: [UInt8]
    /// Longest time from being accepted by the engine to the end of the answer, connecting
    /// included; not that in which ``DeliveryEngine/send(_:)`` waits for room.
    package var deadline: Duration
    /// The address to connect to instead of what the name resolves to. Certificates are still
    /// checked against the name.
    package var address: IPAddress?

    /// The longest body, in bytes.
    package static let bodyBytesMax = 1 << 20
    /// The longest URL, in bytes: origin and target.
    package static let urlBytesMax = 4096

    /// A request.
    package init(
        origin: String, target: String, fields: DeliveryFields, body: [UInt8], deadline: Duration
    ) {
        self.origin = origin
        self.target = target
        self.fields = fields
        self.body = body
        self.deadline = deadline
    }
}

/// Header fields in the form in which libcurl sends them, made once for many requests.
package final class DeliveryFields: @unchecked Sendable {
    // Sound: the list is not altered after `init`, libcurl only reads it, and requests hold this
    // object as long as libcurl holds the list.
    let list: UnsafeMutablePointer<curl_slist>?

    /// Fields of these names and values, and no others but those of HTTP itself.
    ///
    /// - Throws: ``DeliveryError``: `badRequest` for a name or value that is none, `noMemory`.
    package init(_ fields: [(name: String, value: String)]) throws(DeliveryError) {
        var list: UnsafeMutablePointer<curl_slist>?
        var lines: [String] = []
        for (name, value) in fields {
            let isName = name.utf8.allSatisfy {
                (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":")
            }
            let isValue = value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
            guard isName, !name.isEmpty, isValue, value.contains(where: { $0 != " " }) else {
                throw DeliveryError(.badRequest, "\(name) or its value is no header field")
            }
            lines.append("\(name): \(value)")
        }
        // What libcurl would add by itself: a type of its own for the body, what it accepts, and
        // the wish for `100 Continue`, for which it would wait.
        for name in ["content-type", "accept", "expect"]
        where !fields.contains(where: { $0.name.lowercased() == name }) {
            lines.append("\(name):")
        }
        for line in lines {
            guard let longer = curl_slist_append(list, line) else {
                curl_slist_free_all(list)
                throw DeliveryError(.noMemory, "no memory for header fields")
            }
            list = longer
        }
        self.list = list
    }

    deinit {
        curl_slist_free_all(list)
    }
}
