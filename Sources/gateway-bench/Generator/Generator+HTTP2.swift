/// HTTP/2 on a connection with one request: an event stream.
extension Generator {
    /// What the server sent before it is told that it may send as much more, bytes.
    private static let creditBytes = Int(HTTP2Request.windowBytes / 2)

    /// Reads the frames in the first `count` bytes of the plaintext.
    func takeFrames(_ count: Int, on connection: ClientConnection) {
        var place = 0
        // Nothing is read while this runs, so that no copy is made.
        let text = plaintext
        while connection.state == .open {
            let step: HTTP2Reader.Step?
            do throws(HTTP2Fault) {
                step = try connection.http2?.next(text.span.extracting(0..<count), at: &place)
            } catch {
                fail(connection, "HTTP/2: \(error)")
                return
            }
            switch step {
            case .needsMore, nil:
                if let credit = connection.http2?.takeCredit(atLeast: Self.creditBytes) {
                    send(HTTP2Request.windowUpdates(credit), on: connection)
                }
                return
            case .settings: send(HTTP2Request.settingsAcknowledgement, on: connection)
            case .ping(let value): send(HTTP2Request.pong(value), on: connection)
            case .head(isOK: true):
                connection.head = .http2Stream
                connection.user.headed(connection, .http2Stream)
            case .head(isOK: false):
                fail(connection, "refused: the answer is not 200 with a body")
            case .body(let range): takeBody(text, range, on: connection)
            case .end: fail(connection, "the stream ended")
            }
        }
    }
}
