import COpenSSL
import NIOCore
import NIOTLS

/// From the socket to the request handlers.
extension TLSServerHandler {
    package func read(context: ChannelHandlerContext) {
        readWanted = true
        context.read()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let ssl, let wire else { return }
        let input = Self.unwrapInboundIn(data)
        switch phase {
        case .handshaking, .open:
            var pass = ReadPass()
            pass.run(
                ssl, wire, input, handshaking: phase == .handshaking, secrets,
                context.channel.allocator)
            conclude(pass, context)
        case .closing where goodbyeAwaited && !inputClosed:
            var pass = ReadPass()
            pass.run(ssl, wire, input, handshaking: false, nil, context.channel.allocator)
            if pass.end != nil {
                inputClosed = true
                closeWhenDone(context)
            }
        case .idle, .closing, .closed:
            break
        }
    }

    func conclude(_ pass: ReadPass, _ context: ChannelHandlerContext) {
        if pass.handshakeDone { becomeOpen(context) }
        if let answer = pass.answer {
            let owed = answer.readableBytes
            if phase == .open, !pass.handshakeDone { unreadAnswersBytes += owed }
            hand(answer, [], context)
        }
        if pass.handshakeDone, phase == .open {
            context.fireUserInboundEventTriggered(
                TLSUserEvent.handshakeCompleted(negotiatedProtocol: negotiatedProtocol))
            if flushWhenOpen, phase == .open { sealPending(context) }
        }
        if let plaintext = pass.plaintext, phase == .open {
            readWanted = false
            context.fireChannelRead(Self.wrapInboundOut(plaintext))
        }
        guard phase == .open || phase == .handshaking else { return }
        switch pass.end {
        case nil:
            if unreadAnswersBytes > settings.unreadAnswersBytesMax {
                let error = TLSError(
                    .protocolViolation, "the peer demands answers and does not read them")
                fail(error, context)
            }
        case .closeNotify:
            peerSaidGoodbye(context)
        case .failed(let error):
            if case .handshakeFailed(let reason) = error.code { loopCounters?.failed(reason) }
            fail(error, context)
        }
    }

    func becomeOpen(_ context: ChannelHandlerContext) {
        guard let ssl else { return }
        phase = .open
        deadline?.cancel()
        deadline = nil
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &name, &length)
        if let name, length > 0 {
            negotiatedProtocol = String(
                decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
        }
        if negotiatedProtocol == "h2", let secrets {
            TrafficSecrets.detach(from: ssl)
            TrafficSecrets.free(secrets)
            self.secrets = nil
        }
        isResumed = SSL_session_reused(ssl) == 1
        loopCounters?.done(resumed: isResumed)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        switch phase {
        case .handshaking, .closing:
            context.read()
        case .open:
            // Bytes came, but no whole record: whoever asked is still waiting.
            if readWanted, !inputClosed { context.read() }
        case .idle, .closed:
            break
        }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (event as? ChannelEvent, phase) {
        case (.inputClosed?, .handshaking):
            loopCounters?.failed(.other)
            phase = .closing
            context.close(promise: nil)
        case (.inputClosed?, .open):
            guard !inputClosed else { return }
            inputClosed = true
            inputTruncated = true
            context.fireUserInboundEventTriggered(event)
        case (.inputClosed?, .closing):
            inputClosed = true
            closeWhenDone(context)
        case (.outputClosed?, .closing):
            break
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func peerSaidGoodbye(_ context: ChannelHandlerContext) {
        guard !inputClosed else { return }
        inputClosed = true
        let halfClosure =
            (try? context.channel.syncOptions?.getOption(ChannelOptions.allowRemoteHalfClosure))
            ?? false
        if halfClosure, !outputClosed {
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        } else {
            beginClosing(context, sayGoodbye: true)
        }
    }
}
