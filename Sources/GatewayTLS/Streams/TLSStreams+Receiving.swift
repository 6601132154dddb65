import COpenSSL
import Glibc
import NIOCore

/// What the readers of streams say: nothing that counts, but for what TLS itself has to know.
extension TLSStreams {
    /// What the watcher saw.
    func take(_ news: [StreamWatcher.News]) {
        for one in news {
            let place = places[Int(truncatingIfNeeded: one.token & 0xFFFF_FFFF)]
            guard place.serial == UInt32(truncatingIfNeeded: one.token >> 32),
                let stream = place.stream
            else { continue }
            if one.isWritable, stream.phase != .closed { takeRoom(stream) }
            if one.isReadable, stream.phase != .closed { takeInput(stream) }
        }
    }

    private func takeInput(_ stream: TLSStream) {
        // A peer that never stops talking must not keep the loop from its other streams.
        for _ in 0..<4 {
            let count = recv(stream.descriptor, input.baseAddress, input.count, Int32(MSG_DONTWAIT))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return }
            guard count > 0 else { return lose(stream) }
            // Once we have said goodbye, only the end itself is waited for.
            guard stream.phase == .open else { continue }
            take(UnsafeMutableRawBufferPointer(rebasing: input[..<count]), stream)
            if stream.phase == .closed { return }
        }
        loop.assumeIsolated().execute { if stream.phase != .closed { self.takeInput(stream) } }
    }

    /// Why no more is read.
    private enum PeerEnd {
        /// The peer said goodbye.
        case goodbye
        /// The peer broke the protocol; the alert is in the wire.
        case violation
        /// The peer is not there any more.
        case lost
    }

    private func take(_ bytes: UnsafeMutableRawBufferPointer, _ stream: TLSStream) {
        guard let engines else { return }
        let wire = engines.wire
        let end: PeerEnd?
        switch stream.engine {
        case .records(let layer):
            wire.begin()
            end = read(bytes, layer, engines)
        case .openSSL(let ssl):
            wire.begin(input: UnsafeRawBufferPointer(bytes))
            end = discard(ssl, wire)
        }
        switch end {
        case nil:
            answer(wire.output, stream)
            wire.finish()
            if (stream.backlog?.answers ?? 0) > settings.unreadAnswersBytesMax { lose(stream) }
        case .goodbye:
            sayGoodbye(stream, engines)
            leave(stream, wire)
            owner.ended(stream.name)
        case .violation:
            leave(stream, wire)
            owner.ended(stream.name)
        case .lost:
            wire.finish()
            lose(stream)
        }
    }

    private func answer(_ bytes: UnsafeRawBufferPointer, _ stream: TLSStream) {
        guard !bytes.isEmpty else { return }
        var sent = 0
        if stream.backlog == nil { sent = max(0, Self.give(bytes, to: stream.descriptor)) }
        guard sent < bytes.count else { return }
        queue(UnsafeRawBufferPointer(rebasing: bytes[sent...]), on: stream)
        stream.backlog?.answers += bytes.count - sent
    }

    private func read(
        _ bytes: UnsafeMutableRawBufferPointer, _ layer: UnsafeMutablePointer<RecordLayer>,
        _ engines: Engines
    ) -> PeerEnd? {
        guard !layer.pointee.partial.isEmpty else { return readWhole(bytes, layer, engines) }
        var joined = layer.pointee.partial
        layer.pointee.partial = []
        joined.append(contentsOf: bytes)
        return joined.withUnsafeMutableBytes { readWhole($0, layer, engines) }
    }

    /// Reads the records in `bytes` and keeps the beginning of the last, if that is all there is.
    private func readWhole(
        _ bytes: UnsafeMutableRawBufferPointer, _ layer: UnsafeMutablePointer<RecordLayer>,
        _ engines: Engines
    ) -> PeerEnd? {
        var rest = bytes
        while true {
            switch RecordFraming(UnsafeRawBufferPointer(rest)) {
            case .incomplete:
                layer.pointee.partial = Array(rest)
                return nil
            case .refused(let alert):
                return refuse(alert, layer, engines)
            case .record(let count):
                let record = UnsafeMutableRawBufferPointer(rebasing: rest[..<count])
                rest = UnsafeMutableRawBufferPointer(rebasing: rest[count...])
                if let end = read(record: record, layer, engines) { return end }
            }
        }
    }

    private func read(
        record: UnsafeMutableRawBufferPointer, _ layer: UnsafeMutablePointer<RecordLayer>,
        _ engines: Engines
    ) -> PeerEnd? {
        let (cipher, wire) = (engines.cipher, engines.wire)
        let action: PeerMessages.Action =
            switch cipher.open(record, layer) {
            case .content(let type, let content): layer.pointee.messages.take(type, content)
            case .refused(let alert): .refuse(alert)
            }
        switch action {
        case .none: return nil
        case .goodbye: return .goodbye
        case .lost: return .lost
        case .refuse(let alert): return refuse(alert, layer, engines)
        case .updateKeys(let answered):
            guard cipher.updateReceiving(layer),
                !answered || cipher.sealKeyUpdate(layer, to: wire)
            else { return refuse(.internalError, layer, engines) }
            return nil
        }
    }

    private func refuse(
        _ alert: Alert, _ layer: UnsafeMutablePointer<RecordLayer>, _ engines: Engines
    ) -> PeerEnd {
        engines.cipher.seal(alert, layer, to: engines.wire) ? .violation : .lost
    }

    private func discard(_ ssl: OpaquePointer, _ wire: TLSWire) -> PeerEnd? {
        while true {
            ERR_clear_error()
            var count = 0
            let result = SSL_read_ex(ssl, wire.scratch.baseAddress, wire.scratch.count, &count)
            if result == 1 { continue }
            let error = SSL_get_error(ssl, result)
            ERR_clear_error()
            switch error {
            case SSL_ERROR_WANT_READ: return nil
            case SSL_ERROR_ZERO_RETURN: return .goodbye
            default: return .violation
            }
        }
    }
}
