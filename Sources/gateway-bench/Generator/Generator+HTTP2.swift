/// HTTP/2 on a connection with one request: an event stream.
extension Generator {
    /// Asks for an event stream, in the protocol of the connection.
    func openStream(
        _ path: String, fields: [(name: String, value: String)], on connection: ClientConnection
    ) {
        guard let stream = connection.http2 else {
            return send(Request.bytes("GET", path, headers: fields), on: connection)
        }
        stream.get(path, fields: fields)
        send(stream.outgoing(), on: connection)
    }

    /// Reads the frames in the first `count` bytes of the plaintext.
    func readFrames(_ count: Int, from stream: HTTP2Stream, on connection: ClientConnection) {
        let isSound = plaintext.withUnsafeBytes { bytes in
            stream.receive(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        if connection.head == nil, stream.status >= 200 {
            guard stream.status == 200 else {
                return fail(connection, "refused with status \(stream.status)")
            }
            connection.head = .http2Stream
            connection.user.headed(connection, .http2Stream)
        }
        readBody(stream.body, 0..<stream.body.count, on: connection)
        guard isSound, stream.endCode == nil else {
            return fail(
                connection, "HTTP/2: " + (stream.endCode.map { "ended with \($0)" } ?? "malformed"))
        }
        let answer = stream.outgoing()
        if !answer.isEmpty { send(answer, on: connection) }
    }
}
