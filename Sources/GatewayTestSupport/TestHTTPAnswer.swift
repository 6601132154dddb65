import WidgetModel

/// What a server answered.
package struct TestHTTPAnswer: Sendable {
    /// The status; 0 while none came.
    package var status = 0
    /// `1.1` or `2`.
    package var version = ""
    /// Header fields in the order sent, names in lower case.
    package var headers: [(name: String, value: String)] = []
    /// The body.
    package var body: [UInt8] = []

    /// The first field called `name` (lower case).
    package func header(_ name: String) -> String? {
        headers.first { $0.name == name }?.value
    }

    /// The body as text.
    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The body as JSON; `nil` when it is none.
    package var json: JSONValue? { try? JSONValue(parsing: body) }

    /// The member `name` of a JSON object body.
    package subscript(_ name: String) -> JSONValue? { json?.objectValue?[name] }

    /// Takes one header line as libcurl hands it over. A status line starts anew: what came
    /// before it was an interim answer.
    mutating func take(headerLine line: String) {
        let line = line.last?.isNewline == true ? String(line.dropLast()) : line
        if line.hasPrefix("HTTP/") {
            let words = line.split(separator: " ")
            self = TestHTTPAnswer()
            version = String((words.first ?? "").dropFirst(5))
            status = words.count > 1 ? Int(words[1]) ?? 0 : 0
            return
        }
        guard let colon = line.firstIndex(of: ":") else { return }
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        headers.append((line[..<colon].lowercased(), String(value)))
    }
}

/// Why a request got no answer.
package struct TestHTTPError: Error, CustomStringConvertible {
    /// What was asked.
    package let request: String
    /// libcurl's code.
    package let code: UInt32
    /// In words.
    package let description: String

    /// A failure of `request`.
    init(_ request: String, code: UInt32, _ reason: String) {
        self.request = request
        self.code = code
        description = "\(request): \(reason) (libcurl \(code))"
    }
}

/// The HTTP version a client speaks.
package enum TestHTTPVersion: Sendable {
    /// HTTP/1.1.
    case one
    /// HTTP/2, negotiated by ALPN.
    case two
}
