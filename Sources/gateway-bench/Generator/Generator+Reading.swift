import COpenSSL

/// From the peer's records to the connection's user.
extension Generator {
    /// Longest body kept of a response that is no stream.
    private static let bodyBytesMax = 1024 * 1024

    /// Shakes hands, or reads what came.
    func advance(_ connection: ClientConnection) {
        guard let session = connection.session else { return }
        ERR_clear_error()
        if connection.state == .handshaking {
            let result = SSL_do_handshake(session)
            let reason = SSL_get_error(session, result)
            flush(connection)
            guard result == 1 else {
                if reason != SSL_ERROR_WANT_READ {
                    fail(connection, "handshake: \(TLSClient.reason())")
                }
                return
            }
            guard connection.state == .handshaking else { return }
            connection.state = .open
            connection.user.opened(connection)
        }
        while connection.state == .open,
            BIO_ctrl_pending(tls.incoming) > 0 || SSL_has_pending(session) == 1
        {
            let count = SSL_read(session, &plaintext, Int32(Self.bufferBytes))
            guard count > 0 else {
                let reason = SSL_get_error(session, count)
                if reason == SSL_ERROR_WANT_READ { break }
                fail(
                    connection,
                    reason == SSL_ERROR_ZERO_RETURN
                        ? "the server closed the connection" : "TLS: \(TLSClient.reason())")
                return
            }
            readResponses(Int(count), on: connection)
        }
        if connection.state == .open, BIO_ctrl_pending(tls.outgoing) > 0 { flush(connection) }
    }

    /// Reads the responses in the first `count` bytes of the plaintext.
    private func readResponses(_ count: Int, on connection: ClientConnection) {
        var place = 0
        // Nothing is read while this runs, so that no copy is made.
        let text = plaintext
        while connection.state == .open {
            let bytes = text.span.extracting(0..<count)
            let step: ResponseReader.Step
            do throws(ResponseFault) {
                step = try connection.reader.next(bytes, at: &place)
            } catch {
                fail(connection, "not HTTP: \(error)")
                return
            }
            switch step {
            case .needsMore: return
            case .head(let head):
                connection.head = head
                connection.user.headed(connection, head)
            case .body(let range):
                readBody(text, range, on: connection)
            case .end where connection.head?.isEventStream == true:
                fail(connection, "the stream ended")
            case .end:
                let (status, body) = (connection.head?.status ?? 0, connection.body)
                connection.head = nil
                connection.body = []
                connection.user.answered(connection, status: status, body: body)
            }
        }
    }

    /// Reads a part of the body of the response that is being read.
    private func readBody(_ text: [UInt8], _ range: Range<Int>, on connection: ClientConnection) {
        if connection.head?.isEventStream == true {
            connection.streamBytes += range.count
            let ids = connection.scanner.idCount
            let events = connection.scanner.scan(text.span.extracting(range))
            if events > 0 || connection.scanner.idCount > ids {
                connection.user.streamed(connection, events: events)
            }
        } else if connection.body.count + range.count <= Self.bodyBytesMax {
            connection.body += text[range]
        }
    }
}
