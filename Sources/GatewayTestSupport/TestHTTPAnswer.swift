import CurlMulti
import WidgetModel

package struct TestHTTPAnswer: Sendable {
    /// The status; 0 while none came.
    package var status = 0
    /// `1.1` or `2`.
    package var version = ""
    /// Header fields in the order sent, names in lower case.
    package var headers: [(name: String, value: String)] = []
    package var body: [UInt8] = []

    /// The first field called `name` (lower case).
    package func header(_ name: String) -> String? {
        headers.first { $0.name == name }?.value
    }

    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as JSON; `nil` when it is none.
    package var json: JSONValue? { try? JSONValue(parsing: body) }

    /// The member `name` of a JSON object body.
    package subscript(_ name: String) -> JSONValue? { json?.objectValue?[name] }

    init() {}

    init(_ head: CurlHead) {
        (status, version, headers) = (head.status, head.version, head.fields)
    }
}

/// Why a request got no answer.
package struct TestHTTPError: Error, CustomStringConvertible {
    /// The method and path.
    package let request: String
    /// In words.
    package let description: String

    /// A failure of `request`, after as much of an answer.
    init(_ request: String, _ failure: CurlError, _ answer: TestHTTPAnswer) {
        self.request = request
        description =
            "\(request): \(failure), after status \(answer.status) and "
            + "\(answer.body.count) bytes of the body"
    }
}

/// The HTTP version a client speaks.
package enum TestHTTPVersion: Sendable {
    /// HTTP/1.1.
    case one
    /// HTTP/2, negotiated by ALPN.
    case two
}
