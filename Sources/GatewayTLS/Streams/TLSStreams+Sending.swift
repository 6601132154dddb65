import COpenSSL
import Glibc

/// From plaintext to the socket.
extension TLSStreams {
    /// Seals `plaintext` into as few records as possible and gives them to the socket.
    ///
    /// With nothing queued it makes no allocation of ours. `.refused` says that the stream is over,
    /// or that more than `queuedBytesMax` waits; the owner closes it then.
    package func send(_ plaintext: UnsafeRawBufferPointer, to stream: TLSStream) -> StreamWrite {
        guard stream.phase == .open, let engines else { return .refused }
        guard !plaintext.isEmpty else { return stream.backlog == nil ? .sent : .queued }
        if let backlog = stream.backlog,
            backlog.left + plaintext.count > settings.queuedBytesMax
        {
            return .refused
        }
        let wire = engines.wire
        wire.begin()
        defer { wire.finish() }
        guard seal(plaintext, stream, engines) else {
            // Nothing can follow a record that was not made.
            ERR_clear_error()
            return .refused
        }
        if stream.backlog != nil {
            queue(wire.output, on: stream)
            return .queued
        }
        let ciphertext = wire.output
        let sent = Self.give(ciphertext, to: stream.descriptor)
        if sent > 0 { TLSLoopCounters.add(sent, to: counters.direct) }
        if sent == ciphertext.count { return .sent }
        guard sent >= 0 else { return .refused }
        queue(UnsafeRawBufferPointer(rebasing: ciphertext[sent...]), on: stream)
        return .queued
    }

    /// The records are in the wire's output.
    @inline(__always)
    func seal(
        _ plaintext: UnsafeRawBufferPointer, _ stream: TLSStream, _ engines: Engines
    ) -> Bool {
        switch stream.engine {
        case .records(let layer): engines.cipher.seal(plaintext, layer, to: engines.wire)
        case .openSSL(let ssl): RecordSealing.seal(plaintext, ssl)
        }
    }

    /// The bytes the kernel took: all, some or none; -1 when the connection is gone.
    @inline(__always)
    static func give(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int {
        while true {
            let sent = Glibc.send(
                descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            if sent >= 0 { return sent }
            switch errno {
            case EINTR: continue
            // The last two: the kernel is short of memory, not the connection of life.
            case EAGAIN, EWOULDBLOCK, ENOBUFS, ENOMEM: return 0
            default: return -1
            }
        }
    }

    func queue(_ bytes: UnsafeRawBufferPointer, on stream: TLSStream) {
        if stream.backlog == nil {
            stream.backlog = TLSStream.Backlog(bytes: Array(bytes))
        } else {
            stream.backlog?.bytes.append(contentsOf: bytes)
        }
        guard !stream.isWatchedForRoom else { return }
        stream.isWatchedForRoom = true
        _ = engines?.watcher.watchRoom(stream.descriptor, token: token(of: stream))
    }

    /// Sends what waits; answers whether the connection lives.
    private func flush(_ stream: TLSStream) -> Bool {
        while let backlog = stream.backlog {
            let sent = backlog.bytes.withUnsafeBytes {
                Self.give(
                    UnsafeRawBufferPointer(rebasing: $0[backlog.sent...]), to: stream.descriptor)
            }
            guard sent >= 0 else { return false }
            TLSLoopCounters.add(sent, to: counters.direct)
            stream.backlog?.sent += sent
            if sent == backlog.left {
                stream.backlog = nil
            } else if sent == 0 {
                break
            }
        }
        return true
    }

    /// The socket takes bytes again.
    func takeRoom(_ stream: TLSStream) {
        guard stream.backlog != nil else { return }
        guard flush(stream) else { return lose(stream) }
        guard stream.backlog == nil else { return }
        switch stream.phase {
        case .open: owner.drained(stream.name)
        case .closing: shutdown(stream.descriptor, Int32(SHUT_WR))
        case .closed: break
        }
    }
}
