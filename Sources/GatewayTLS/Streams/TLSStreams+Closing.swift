import COpenSSL
import Glibc
import NIOCore

extension TLSStreams {
    /// Ends a stream in order: sends `farewell` and `close_notify`, then closes the socket when the
    /// peer has ended its side, or after `closeTimeout` at the latest.
    package func end(_ stream: TLSStream, farewell: UnsafeRawBufferPointer) {
        loop.assertInEventLoop()
        guard stream.phase == .open, let engines else { return }
        engines.wire.begin()
        if farewell.isEmpty || seal(farewell, stream, engines) { sayGoodbye(stream, engines) }
        leave(stream, engines.wire)
    }

    /// Ends a stream at once.
    package func close(_ stream: TLSStream) {
        loop.assertInEventLoop()
        guard stream.phase != .closed else { return }
        forget(stream)
    }

    /// Seals `close_notify` into the wire's output.
    func sayGoodbye(_ stream: TLSStream, _ engines: Engines) {
        switch stream.engine {
        case .records(let layer):
            _ = engines.cipher.seal(Alert.closeNotify, layer, to: engines.wire)
        case .openSSL(let ssl):
            ERR_clear_error()
            SSL_shutdown(ssl)
        }
    }

    /// Sends the wire's output as the stream's last bytes and gives the wire back. The socket
    /// closes when the peer has ended its side: closing it at once could destroy bytes in flight,
    /// because the kernel answers unread input with a reset.
    func leave(_ stream: TLSStream, _ wire: MemoryBIO) {
        stream.phase = .closing
        // A fresh budget leaves the peer room to end its side, and not to go on sending.
        stream.input = InputBudget(now: .now())
        _ = sendOrQueue(wire.output, on: stream)
        wire.finish()
        if stream.backlog == nil { shutdown(stream.descriptor, Int32(SHUT_WR)) }
        _ = closing.set(token(of: stream), now: .now())
        setClosingTimer()
    }

    /// Drops a stream whose connection is lost or whose peer is to be cut off; informs the owner if
    /// it was open.
    func lose(_ stream: TLSStream) {
        let wasOpen = stream.phase == .open
        forget(stream)
        if wasOpen { owner.ended(stream.name) }
    }

    private func setClosingTimer() {
        guard closingTimer == nil,
            let next = closing.next({ token, _ in places[token] != nil })
        else { return }
        closingTimer = loop.assumeIsolated().scheduleTask(deadline: next) {
            self.closingTimer = nil
            self.closeOverdue()
        }
    }

    private func closeOverdue() {
        let now = NIODeadline.now()
        while let token = closing.takePassed(now: now, { token, _ in places[token] != nil }) {
            if let stream = places[token] { forget(stream) }
        }
        setClosingTimer()
    }
}
