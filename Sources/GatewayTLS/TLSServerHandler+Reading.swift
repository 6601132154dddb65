import COpenSSL
import NIOCore

/// Reading: from the socket to the request handlers.
extension TLSServerHandler {
    package func read(context: ChannelHandlerContext) {
        readWanted = true
        context.read()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let ssl, let wire else { return }
        let input = Self.unwrapInboundIn(data)
        guard phase == .open || (phase == .closing && !inputClosed) else { return }
        if phase == .closing { heardAt = context.eventLoop.now }
        var pass = ReadPass()
        pass.run(
            with: ssl, on: wire, input: input, allocator: context.channel.allocator, &emptyRecords,
            settings.emptyRecords)
        if phase == .open {
            conclude(pass, context)
        } else if pass.end != nil {
            endInput(.closed)
            closeWhenDone(context)
        }
    }

    func conclude(_ pass: ReadPass, _ context: ChannelHandlerContext) {
        if let answer = pass.answer {
            unreadAnswersBytes += answer.readableBytes
            hand(answer, [], context)
        }
        if let plaintext = pass.plaintext, phase == .open {
            readWanted = false
            context.fireChannelRead(Self.wrapInboundOut(plaintext))
        }
        guard phase == .open else { return }
        switch pass.end {
        case nil:
            if unreadAnswersBytes > settings.unreadAnswersBytesMax {
                let error = TLSError(
                    .protocolViolation(.unreadAnswers),
                    "the peer demands responses and does not read them")
                fail(error, context)
            }
        case .closeNotify:
            peerSaidGoodbye(context)
        case .failed(let error):
            fail(error, context)
        }
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        switch phase {
        case .closing, .failing:
            context.read()
        case .open:
            // Bytes arrived, but no whole record, so the requested read is still outstanding.
            if readWanted, !inputClosed { context.read() }
        case .idle, .closed:
            break
        }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (event as? ChannelEvent, phase) {
        case (.inputClosed?, .open):
            guard !inputClosed else { return }
            endInput(.truncated)
            context.fireUserInboundEventTriggered(event)
        case (.inputClosed?, .closing), (.inputClosed?, .failing):
            endInput(.closed)
            closeWhenDone(context)
        case (.outputClosed?, .closing), (.outputClosed?, .failing):
            break
        default:
            context.fireUserInboundEventTriggered(event)
        }
    }

    func peerSaidGoodbye(_ context: ChannelHandlerContext) {
        guard !inputClosed else { return }
        endInput(.closed)
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
