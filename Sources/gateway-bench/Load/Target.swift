import Glibc

/// The server that is measured: the gateway, or a peer of it.
struct Target {
    /// Its TLS port of 127.0.0.1.
    var port: UInt16
    /// The processes whose CPU time and memory count.
    var processes: [pid_t]
    /// The request that opens stream `number`, counted from 0.
    var streamRequest: (_ number: Int) -> [UInt8]
    /// The request that announces one change to all of them.
    var changeRequest: () -> [UInt8]
    /// Whether a new stream starts with an event; else it is ready with its head.
    var greets: Bool
    /// Whether its streams are HTTP/2 connections.
    var isHTTP2: Bool
}

/// Writes requests.
enum Request {
    /// A request for `localhost` over HTTP/1.1.
    static func bytes(
        _ method: String, _ path: String, token: String? = nil, type: String? = nil,
        headers: [(String, String)] = [], body: [UInt8]? = nil
    ) -> [UInt8] {
        var text = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
        if let token { text += "Authorization: Bearer \(token)\r\n" }
        if let type { text += "Content-Type: \(type)\r\n" }
        if let body { text += "Content-Length: \(body.count)\r\n" }
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        return Array((text + "\r\n").utf8) + (body ?? [])
    }

    /// What a connection that is to be an event stream says first.
    static func stream(
        _ path: String, token: String? = nil, after cursor: String? = nil, isHTTP2: Bool
    ) -> [UInt8] {
        var fields = [("Accept", "text/event-stream")]
        if let cursor { fields.append(("Last-Event-ID", cursor)) }
        guard isHTTP2 else { return bytes("GET", path, token: token, headers: fields) }
        if let token { fields.append(("Authorization", "Bearer \(token)")) }
        return HTTP2Request.start(path, fields: fields)
    }
}
