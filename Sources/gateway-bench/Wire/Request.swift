enum Request {
    /// Returns a request for `localhost` over HTTP/1.1.
    static func bytes(
        _ method: String, _ path: String, token: String? = nil, type: String? = nil,
        headers: [(name: String, value: String)] = [], body: [UInt8]? = nil
    ) -> [UInt8] {
        var text = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
        if let token { text += "Authorization: Bearer \(token)\r\n" }
        if let type { text += "Content-Type: \(type)\r\n" }
        if let body { text += "Content-Length: \(body.count)\r\n" }
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        return Array((text + "\r\n").utf8) + (body ?? [])
    }

    /// Returns the header fields of a request for an event stream.
    static func streamFields(
        token: String, after cursor: String? = nil
    ) -> [(name: String, value: String)] {
        [("Accept", "text/event-stream"), ("Authorization", "Bearer \(token)")]
            + (cursor.map { [("Last-Event-ID", $0)] } ?? [])
    }
}
