import COpenSSL
import Glibc
import NIOCore

/// The short way out for streams: no `ByteBuffer`, no promise, no pipeline.
extension TLSServerHandler {
    /// Seals `plaintext` and gives it to the socket.
    ///
    /// Order is kept with everything else written to this handler: what was written and not flushed
    /// goes first, and while NIO holds anything of ours, this goes behind it. Bytes that leave this
    /// way are not seen by other handlers: idle and write timeouts do not count them, and promises
    /// and writability do not tell about them. May close the channel before it returns when a queued
    /// write meets a dead connection. On the channel's loop only. With nothing queued it makes no
    /// allocation of ours.
    package func sealAndSend(_ plaintext: UnsafeRawBufferPointer) -> DirectWrite {
        guard let ssl, let wire, phase == .open, !outputClosed else { return .refused(refusal) }
        guard !isHTTP2 else { return .refused(.http2) }
        guard !plaintext.isEmpty else { return queuedBytes == 0 ? .sent : .queued }
        guard descriptor >= 0, queuedBytes == 0, pending.isEmpty else {
            return sendBehind(plaintext)
        }
        wire.begin()
        guard RecordSealing.seal(plaintext, ssl) else {
            wire.finish()
            return cannotSeal()
        }
        let ciphertext = wire.output
        let sent = Self.send(ciphertext, descriptor)
        if let loopCounters, sent > 0 { TLSLoopCounters.add(sent, to: loopCounters.direct) }
        if sent == ciphertext.count {
            wire.finish()
            return .sent
        }
        guard sent >= 0, let context else {
            wire.finish()
            return connectionIsDead()
        }
        var rest = context.channel.allocator.buffer(capacity: ciphertext.count - sent)
        rest.writeBytes(UnsafeRawBufferPointer(rebasing: ciphertext[sent...]))
        wire.finish()
        hand(rest, [], context)
        return outcome
    }

    /// The bytes the kernel took: all, some or none; -1 when the connection is gone.
    @inline(__always)
    private static func send(
        _ bytes: UnsafeRawBufferPointer, _ descriptor: NIOBSDSocket.Handle
    ) -> Int {
        while true {
            let sent = Glibc.send(
                descriptor, bytes.baseAddress, bytes.count,
                Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            if sent >= 0 { return sent }
            switch errno {
            case EINTR: continue
            // The last two: NIO tries again and reports what is wrong, if anything is.
            case EAGAIN, EWOULDBLOCK, ENOBUFS, ENOMEM: return 0
            default: return -1
            }
        }
    }

    /// The way through NIO: behind what is queued there, with what was not flushed yet before it.
    private func sendBehind(_ plaintext: UnsafeRawBufferPointer) -> DirectWrite {
        guard let context else { return .refused(.closed) }
        guard queuedBytes + plaintext.count <= settings.queuedBytesMax else {
            return .refused(.queueFull)
        }
        var bytes = context.channel.allocator.buffer(capacity: plaintext.count)
        bytes.writeBytes(plaintext)
        write(context: context, data: NIOAny(IOData.byteBuffer(bytes)), promise: nil)
        flush(context: context)
        return outcome
    }

    /// What to answer after NIO has had its turn: it may have taken, kept, or met the end.
    private var outcome: DirectWrite {
        guard phase == .open else { return .refused(refusal) }
        return queuedBytes == 0 ? .sent : .queued
    }

    private var refusal: DirectWrite.Refusal {
        switch phase {
        case .idle, .handshaking: .handshaking
        case .open, .closing, .closed: .closed
        }
    }

    /// The socket refuses for good. Closing now would call handlers while the caller walks through
    /// its streams, so that is left to the loop's next turn.
    private func connectionIsDead() -> DirectWrite {
        descriptor = -1
        outputClosed = true
        context?.eventLoop.assumeIsolated().execute {
            self.context?.close(promise: nil)
        }
        return .refused(.closed)
    }

    private func cannotSeal() -> DirectWrite {
        descriptor = -1
        outputClosed = true
        let reason = OpenSSLErrors.takeReason()
        context?.eventLoop.assumeIsolated().execute {
            guard let context = self.context else { return }
            self.fail(TLSError(.engine, "bytes cannot be encrypted: \(reason)"), context)
        }
        return .refused(.closed)
    }
}
