import COpenSSL
import Glibc

/// Sending: from plaintext to the socket.
extension TLSStreams {
    /// Seals `plaintext` into as few records as possible and writes them to the socket.
    ///
    /// If nothing is queued, our code allocates nothing. Returns `.refused` when the stream has
    /// ended or when more than `queuedBytesMax` would wait; the owner closes the stream then.
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
            // No record can follow one that could not be made.
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

    /// Seals `plaintext` into the wire's output; returns false when OpenSSL refuses.
    @inline(__always)
    func seal(
        _ plaintext: UnsafeRawBufferPointer, _ stream: TLSStream, _ engines: Engines
    ) -> Bool {
        switch stream.engine {
        case .records(let layer): engines.cipher.seal(plaintext, layer, to: engines.wire)
        case .openSSL(let ssl): RecordSealing.seal(plaintext, ssl)
        }
    }

    /// Writes to a socket. Returns the number of bytes that the kernel accepted: all, some or none;
    /// -1 when the connection is lost.
    @inline(__always)
    static func give(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int {
        while true {
            let sent = Glibc.send(
                descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            if sent >= 0 { return sent }
            switch errno {
            case EINTR: continue
            // With the last two the kernel is short of memory, but the connection still works.
            case EAGAIN, EWOULDBLOCK, ENOBUFS, ENOMEM: return 0
            default: return -1
            }
        }
    }

    /// Writes bytes to the socket unless others wait for it, and queues those that the kernel does
    /// not accept. Returns how many are queued.
    func sendOrQueue(_ bytes: UnsafeRawBufferPointer, on stream: TLSStream) -> Int {
        let sent = stream.backlog == nil ? max(0, Self.give(bytes, to: stream.descriptor)) : 0
        guard sent < bytes.count else { return 0 }
        queue(UnsafeRawBufferPointer(rebasing: bytes[sent...]), on: stream)
        return bytes.count - sent
    }

    private func queue(_ bytes: UnsafeRawBufferPointer, on stream: TLSStream) {
        if let backlog = stream.backlog {
            backlog.bytes.append(contentsOf: bytes)
        } else {
            stream.backlog = TLSStream.Backlog(bytes: Array(bytes))
        }
        guard !stream.isWatchedForRoom else { return }
        stream.isWatchedForRoom = true
        _ = engines?.watcher.watchRoom(stream.descriptor, token: token(of: stream))
    }

    /// Sends queued bytes; returns whether the connection is still usable.
    private func flush(_ stream: TLSStream) -> Bool {
        while let backlog = stream.backlog {
            let sent = backlog.bytes.withUnsafeBytes {
                Self.give(
                    UnsafeRawBufferPointer(rebasing: $0[backlog.sent...]), to: stream.descriptor)
            }
            guard sent >= 0 else { return false }
            TLSLoopCounters.add(sent, to: counters.direct)
            backlog.sent += sent
            if backlog.left == 0 {
                stream.backlog = nil
            } else if sent == 0 {
                break
            }
        }
        return true
    }

    /// Sends queued bytes when the socket is writable again.
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
