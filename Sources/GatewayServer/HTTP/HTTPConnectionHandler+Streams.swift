import GatewayCore
import GatewayEngine
import GatewayTLS
import NIOCore
import NIOHTTP1
import WidgetModel

/// The transition from a request to an event stream.
extension HTTPConnectionHandler {
    func admit(_ request: ReloadsRequest) {
        if let ticket = request.ticket { return redeem(ticket, of: request) }
        guard let context, let admission = setup.admission,
            let shard = admission.engine.loops.shard(of: context.eventLoop),
            let identified = identified(request)
        else { return decline() }
        guard !admission.isPrepared(identified) else { return admit(identified, on: shard) }
        let prepared = context.eventLoop.makePromise(of: UInt64.self)
        prepared.completeWithTask { try await admission.prepare(identified) }
        prepared.futureResult.assumeIsolated().whenComplete { result in
            switch result {
            case .success: self.admit(identified, on: shard)
            // The route encounters the same error, and reports it.
            case .failure: self.decline()
            }
        }
    }

    /// Admits a request by the token that its ticket stands for.
    private func redeem(_ ticket: String, of request: ReloadsRequest) {
        guard let context, let tls, let admission = setup.admission else { return decline() }
        let source: SourceAddress?
        do throws(ProblemDetails) {
            source = try setup.source(of: tls.peer, forwarded: request.forwarded)
        } catch {
            return decline()
        }
        let redeemed = context.eventLoop.makePromise(of: String.self)
        redeemed.completeWithTask { try await admission.redeem(ticket, from: source) }
        redeemed.futureResult.assumeIsolated().whenComplete { result in
            // Meanwhile the connection may have ended.
            guard self.machine.isAdmitting else { return }
            // The route cannot use the ticket again.
            self.redeemed = result
            var request = request
            request.authorization = try? result.get()
            if request.authorization == nil { self.decline() } else { self.admit(request) }
        }
    }

    private func admit(_ identified: StreamAdmission.Identified, on shard: ShardLoop) {
        // While the registration was read, the connection may have ended.
        guard machine.isAdmitting, let context else { return }
        guard let admission = setup.admission,
            let admitted = try? admission.admit(identified), admission.hasRoom
        else { return decline() }
        guard let claims = admitted.newClaims else {
            return openWhenReached(admitted, on: shard)
        }
        // The token vouches for attributes that differ from those in force: they are applied first.
        let clients = admission.engine.clients
        let presented = context.eventLoop.makePromise(of: ClientRecord.self)
        presented.completeWithTask { try await clients.present(claims, of: admitted.key) }
        presented.futureResult.assumeIsolated().whenComplete { result in
            switch result {
            case .success: self.openWhenReached(admitted, on: shard)
            // The route encounters the same error, and reports it.
            case .failure: self.decline()
            }
        }
    }

    /// Returns who asks for a stream; `nil` if the route has to report a reason, which counts the
    /// request again.
    private func identified(_ request: ReloadsRequest) -> StreamAdmission.Identified? {
        guard let tls, let admission = setup.admission else { return nil }
        do {
            let source = try setup.source(of: tls.peer, forwarded: request.forwarded)
            try admission.requestLimits.admit(source)
            return try admission.identify(
                request, from: source, certificateURIs: { tls.peerCertificateURIs })
        } catch {
            return nil
        }
    }

    /// Lets a route respond.
    private func decline() {
        guard let context else { return }
        perform(machine.streamDeclined(now: context.eventLoop.now))
    }

    private func openWhenReached(_ admitted: StreamAdmission.Admitted, on shard: ShardLoop) {
        shard.whenReached(admitted.head, in: admitted.cursor.epoch) {
            self.open(admitted, on: shard)
        }
    }

    private func open(_ admitted: StreamAdmission.Admitted, on shard: ShardLoop) {
        guard machine.isAdmitting, let context, let tls, let admission = setup.admission else {
            return
        }
        if !isHTTP2, !tls.isDetachable {
            // The previous response is still being sent.
            tls.onDrained = {
                tls.onDrained = nil
                self.open(admitted, on: shard)
            }
            return
        }
        do throws(ShardLoop.Failure) {
            let id = try admission.open(admitted.opening, on: shard) {
                carrier(
                    EventStreamHead(admission, admitted, from: $0), tls: tls, context: context)
            }
            if isHTTP2, self.context != nil {
                stream = (shard, id)
            } else if isHTTP2 {
                shard.close(id)
            } else {
                // The shard owns the connection; the channel closes.
                close()
            }
        } catch {
            switch error {
            // Nothing was sent yet: the route responds with the reason.
            case .refused: decline()
            case .unavailable: close()
            }
        }
    }

    /// Leaves HTTP: begins the response, or detaches the connection. Returns `nil` if it is gone.
    private func carrier(
        _ head: EventStreamHead, tls: TLSServerHandler, context: ChannelHandlerContext
    ) -> ShardLoop.Carrier? {
        guard isHTTP2 else { return tls.detach().map { .connection($0, head: head.http1) } }
        machine.streamOpened()
        redeemed = nil
        context.write(wrapOutboundOut(.head(head.response)), promise: nil)
        context.writeAndFlush(
            wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: head.firstBlocks)))), promise: nil)
        return .sink(self, wantsHeartbeat: true)
    }

    /// Releases the stream, because the channel is gone.
    func closeStream() {
        guard let (shard, id) = stream else { return }
        stream = nil
        shard.close(id)
    }
}

extension HTTPConnectionHandler: EventSink {
    func send(_ blocks: ByteBuffer) -> SinkResult {
        guard let context, machine.isStreaming else { return .gone }
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(blocks))), promise: nil)
        guard context.channel.isWritable else { return .full }
        progress.last = context.eventLoop.now
        return .sent
    }

    func end(_ farewell: ByteBuffer?) {
        guard let context, machine.isStreaming else { return }
        if let farewell { _ = send(farewell) }
        machine.streamEnded()
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        // A reader that does not accept the end must not keep the HTTP/2 stream.
        perform([.startIdleTimer(context.eventLoop.now + setup.settings.answerTimeout)])
    }
}
