import COpenSSL
import NIOCore

/// Closing a connection.
extension TLSServerHandler {
    package func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        switch (mode, phase) {
        case (.all, .open):
            context.channel.closeFuture.cascade(to: promise)
            beginClosing(context, sayGoodbye: true)
        case (.all, .closing), (.all, .failing):
            // Already closing, bounded by the deadline. Asking again ends the wait for a sender.
            context.channel.closeFuture.cascade(to: promise)
            if lingersUntil != nil { setDeadline(settings.closeTimeout, context) }
            lingersUntil = nil
        case (.output, .open):
            guard !outputClosed else {
                promise?.fail(ChannelError.outputClosed)
                return
            }
            sealPending(context)
            if inputClosed {
                // The other half is closed already: the whole connection ends, after the queued
                // bytes.
                context.channel.closeFuture.cascade(to: promise)
                beginClosing(context, sayGoodbye: true)
            } else {
                sayGoodbye(context)
                context.close(mode: .output, promise: promise)
            }
        case (.input, .open) where !outputClosed:
            endInput(.closed)
            context.close(mode: mode, promise: promise)
        default:
            context.close(mode: mode, promise: promise)
        }
    }

    /// Counts and reports that the connection, or a request of it, is ended because of its peer.
    package func report(_ violation: PeerViolation, _ reason: String) {
        settings.report(
            TLSError(.protocolViolation(violation), reason), of: peer.address, to: loopCounters)
    }

    /// Counts and reports `error`, and closes the connection without `close_notify`.
    func fail(_ error: TLSError, _ context: ChannelHandlerContext) {
        settings.report(error, of: peer.address, to: loopCounters)
        beginClosing(context, sayGoodbye: false)
        context.fireErrorCaught(error)
    }

    /// Closes in order: our last record, the end of our side, then the peer's end or the deadline.
    /// Closing the socket at once could destroy bytes in flight, because the kernel answers unread
    /// input with a reset.
    func beginClosing(_ context: ChannelHandlerContext, sayGoodbye graceful: Bool) {
        guard phase == .open else { return }
        if graceful, !outputClosed { sayGoodbye(context) }
        guard phase == .open else { return }
        outputClosed = true
        phase = graceful ? .closing : .failing
        failPending(ChannelError.ioOnClosedChannel)
        deadline?.cancel()
        deadline = nil
        if inputClosed {
            // NIO would drop queued bytes: with both halves closed it closes at once.
            closeWhenDone(context)
        } else {
            context.close(mode: .output, promise: nil)
            if isClosing { context.read() }
        }
        // In most cases the connection has been closed by now.
        guard isClosing else { return }
        setDeadline(lingersUntil == nil ? settings.closeTimeout : settings.lingerSilence, context)
    }

    /// Sends `close_notify`; nothing can be written afterwards.
    func sayGoodbye(_ context: ChannelHandlerContext) {
        guard let ssl, let wire, phase == .open else { return }
        outputClosed = true
        ERR_clear_error()
        wire.begin()
        SSL_shutdown(ssl)
        let last = wire.takeOutput(context.channel.allocator)
        wire.finish()
        if let last { hand(last, [], context) }
    }

    /// Closes the socket once the peer has ended its side and the kernel has all our bytes.
    func closeWhenDone(_ context: ChannelHandlerContext) {
        guard isClosing, inputClosed, queuedBytes == 0 else { return }
        context.close(promise: nil)
    }

    func deadlinePassed() {
        deadline = nil
        guard isClosing, let context else { return }
        guard heardAt != nil, let end = lingersUntil, end > context.eventLoop.now else {
            return context.close(promise: nil)
        }
        heardAt = nil
        setDeadline(min(settings.lingerSilence, end - context.eventLoop.now), context)
    }
}
