import COpenSSL
import NIOCore

/// Writing: from the request handlers to the socket, through NIO.
extension TLSServerHandler {
    package func write(
        context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?
    ) {
        guard case .byteBuffer(let bytes) = Self.unwrapOutboundIn(data) else {
            promise?.fail(TLSError(.unsupportedWrite, "only bytes can be written over TLS"))
            return
        }
        switch phase {
        case .open where !outputClosed:
            pending.append(PendingWrite(bytes: bytes, promise: promise))
            pendingBytes += bytes.readableBytes
        case .open, .closing, .failing:
            promise?.fail(ChannelError.outputClosed)
        case .idle, .closed:
            promise?.fail(ChannelError.ioOnClosedChannel)
        }
    }

    package func flush(context: ChannelHandlerContext) {
        if phase == .open { sealPending(context) }
    }

    /// Seals all pending writes and hands them to NIO as one buffer, so that writes made by a
    /// callback meanwhile cannot overtake those of this flush.
    func sealPending(_ context: ChannelHandlerContext) {
        guard !pending.isEmpty, let ssl, let wire else { return }
        let writes = pending
        let bytes = pendingBytes
        pending = []
        pendingBytes = 0
        let promises = writes.compactMap(\.promise)
        var ciphertext = context.channel.allocator.buffer(
            capacity: RecordSealing.ciphertextCapacity(for: bytes))
        wire.begin()
        let sealed = RecordSealing.seal(writes, ssl, wire, into: &ciphertext)
        wire.finish()
        guard sealed else {
            let error = TLSError(
                .engine, "bytes cannot be encrypted: \(OpenSSLErrors.takeReason())")
            for promise in promises { promise.fail(error) }
            fail(error, context)
            return
        }
        hand(ciphertext, promises, context)
    }

    /// Hands ciphertext to NIO and counts it as queued until the kernel has it.
    func hand(
        _ ciphertext: ByteBuffer, _ promises: [EventLoopPromise<Void>],
        _ context: ChannelHandlerContext
    ) {
        let count = ciphertext.readableBytes
        queuedBytes += count
        if let loopCounters { TLSLoopCounters.add(count, to: loopCounters.byNIO) }
        let done = context.eventLoop.makePromise(of: Void.self)
        done.futureResult.assumeIsolated().whenComplete { result in
            self.handed(count, promises, result)
        }
        context.writeAndFlush(Self.wrapOutboundOut(ciphertext), promise: done)
        if queuedBytes > 0 { drainOwed = true }
    }

    private func handed(
        _ count: Int, _ promises: [EventLoopPromise<Void>], _ result: Result<Void, any Error>
    ) {
        queuedBytes -= count
        // NIO closes the socket before it fails the queued writes, and calls this before
        // `channelInactive`. After a lost record no other record may follow.
        if case .failure = result {
            outputClosed = true
        }
        for promise in promises { promise.completeWith(result) }
        guard queuedBytes == 0 else { return }
        unreadAnswersBytes = 0
        guard case .success = result, drainOwed else { return }
        drainOwed = false
        switch phase {
        case .open: onDrained?()
        case .closing, .failing: if let context { closeWhenDone(context) }
        case .idle, .closed: break
        }
    }
}
