import COpenSSL
import Glibc
import NIOCore

/// Reading from the readers of streams. Their application data is discarded; only TLS's own
/// messages matter.
///
/// A loop reads from its readers in turns of about 1 ms. After each turn it pauses for 1 ms, to
/// poll its sockets: it would not poll between two tasks that follow each other directly.
extension TLSStreams {
    /// A record that was incomplete when its stream was last read.
    struct IncompleteRecord {
        let token: UInt64
        /// The number of records read before it.
        let recordsRead: UInt32
    }

    /// The time after which a turn begins no other read. One read adds at most the work of a
    /// reader's full budget and of the end of its stream.
    private static let turnTimeMax = TimeAmount.milliseconds(1)
    /// The pause between two turns.
    private static let turnPause = TimeAmount.milliseconds(1)
    /// The most bytes given to OpenSSL at once, because it does not report how many key updates
    /// they contained.
    private static let openSSLBytesMax = 2_048

    /// Handles the watcher's events.
    func take(_ news: [StreamWatcher.News]) {
        for one in news {
            guard let stream = places[one.token] else { continue }
            if one.isWritable, stream.phase != .closed { takeRoom(stream) }
            if one.isReadable, stream.phase != .closed { queueForReading(stream) }
        }
        scheduleReadTurn()
    }

    /// Reads now, or when the pause after the turn before is over.
    private func scheduleReadTurn() {
        guard readTimer == nil, !readable.isEmpty else { return }
        guard NIODeadline.now() < nextReadTurn else { return readTurn() }
        readTimer = loop.assumeIsolated().scheduleTask(deadline: nextReadTurn) {
            self.readTimer = nil
            self.readTurn()
        }
    }

    private func queueForReading(_ stream: TLSStream) {
        guard !stream.isQueuedForReading else { return }
        stream.isQueuedForReading = true
        readable.append(token(of: stream))
    }

    /// Reads once from each queued stream, until the turn's time is over.
    ///
    /// The time is measured, not estimated from what was read: how long a record or the end of a
    /// stream takes depends on the machine and on the registration.
    private func readTurn() {
        var now = NIODeadline.now()
        let end = now + Self.turnTimeMax
        while now < end, let token = readable.popFirst() {
            guard let stream = places[token] else { continue }
            stream.isQueuedForReading = false
            receive(stream, now)
            now = .now()
        }
        nextReadTurn = now + Self.turnPause
        scheduleReadTurn()
    }

    /// Reads with one system call, and queues the stream again if there may be more.
    private func receive(_ stream: TLSStream, _ now: NIODeadline) {
        let bytesMax = stream.keepsOpenSSL ? Self.openSSLBytesMax : input.count
        let count = recv(stream.descriptor, input.baseAddress, bytesMax, Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return }
        if count < 0, errno == EINTR {
            queueForReading(stream)
            return
        }
        guard count > 0 else {
            lose(stream)
            return
        }
        if stream.phase == .open {
            take(UnsafeMutableRawBufferPointer(rebasing: input[..<count]), stream, now)
        } else if !stream.input.spend(count, settings.readerInput, now: now) {
            // After our `close_notify` only the peer's end matters; its input is discarded.
            lose(stream)
        }
        if stream.phase != .closed { queueForReading(stream) }
    }

    // MARK: Incomplete records

    /// Sets a deadline for the rest of a record, if the stream waits for one.
    func timeRecord(of stream: TLSStream) {
        guard !stream.isRecordTimed, stream.hasIncompleteRecord else { return }
        stream.isRecordTimed = true
        addRecordDeadline(stream)
        setRecordTimer()
    }

    private func addRecordDeadline(_ stream: TLSStream) {
        _ = recordDeadlines.set(
            IncompleteRecord(token: token(of: stream), recordsRead: stream.recordsRead), now: .now()
        )
    }

    private func setRecordTimer() {
        guard recordTimer == nil,
            let next = recordDeadlines.next({ record, _ in places[record.token] != nil })
        else { return }
        recordTimer = loop.assumeIsolated().scheduleTask(deadline: next) {
            self.recordTimer = nil
            self.endIncompleteRecords()
        }
    }

    private func endIncompleteRecords() {
        let now = NIODeadline.now()
        while let record = recordDeadlines.takePassed(
            now: now, { record, _ in places[record.token] != nil })
        {
            guard let stream = places[record.token] else { continue }
            stream.isRecordTimed = false
            guard stream.hasIncompleteRecord, let engines else { continue }
            if stream.recordsRead == record.recordsRead {
                counters.endStream(.incompleteRecord)
                engines.wire.begin()
                sayGoodbye(stream, engines)
                leave(stream, engines.wire)
                owner.ended(stream.name)
            } else {
                // The incomplete record is not the one that the deadline was set for.
                timeRecord(of: stream)
            }
        }
        setRecordTimer()
    }

    // MARK: Records

    /// The reason why no more is read.
    private enum PeerEnd {
        /// The peer sent `close_notify`.
        case goodbye
        /// The peer broke the protocol; the alert is in the wire's output.
        case violation
        /// The connection cannot be used any more: the peer has gone, or no alert can be sealed.
        case lost
    }

    private func take(
        _ bytes: UnsafeMutableRawBufferPointer, _ stream: TLSStream, _ now: NIODeadline
    ) {
        guard let engines else { return }
        let wire = engines.wire
        let end: PeerEnd?
        switch stream.engine {
        case .records(let layer):
            wire.begin()
            end = read(bytes, of: stream, layer: layer, engines: engines, now: now)
        case .openSSL(let ssl):
            wire.begin(input: UnsafeRawBufferPointer(bytes))
            end = discard(with: ssl, on: wire, of: stream, bytes: bytes.count, now: now)
        }
        switch end {
        case nil:
            answer(wire.output, stream)
            wire.finish()
            if (stream.backlog?.answers ?? 0) > settings.unreadAnswersBytesMax {
                lose(stream)
            } else {
                timeRecord(of: stream)
            }
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
        let queued = sendOrQueue(bytes, on: stream)
        stream.backlog?.answers += queued
    }

    private func read(
        _ bytes: UnsafeMutableRawBufferPointer, of stream: TLSStream,
        layer: UnsafeMutablePointer<RecordLayer>, engines: Engines, now: NIODeadline
    ) -> PeerEnd? {
        guard !layer.pointee.partial.isEmpty else {
            return readWhole(bytes, of: stream, layer: layer, engines: engines, now: now)
        }
        var joined = layer.pointee.partial
        layer.pointee.partial = []
        joined.append(contentsOf: bytes)
        return joined.withUnsafeMutableBytes {
            readWhole($0, of: stream, layer: layer, engines: engines, now: now)
        }
    }

    /// Reads the records in `bytes` and keeps the beginning of the last one if it is incomplete.
    private func readWhole(
        _ bytes: UnsafeMutableRawBufferPointer, of stream: TLSStream,
        layer: UnsafeMutablePointer<RecordLayer>, engines: Engines, now: NIODeadline
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
                stream.recordsRead &+= 1
                guard
                    stream.input.spend(
                        count + InputBudget.recordCost, settings.readerInput, now: now)
                else { return flood(layer, engines) }
                if let end = read(
                    record: record, of: stream, layer: layer, engines: engines, now: now)
                {
                    return end
                }
            }
        }
    }

    private func read(
        record: UnsafeMutableRawBufferPointer, of stream: TLSStream,
        layer: UnsafeMutablePointer<RecordLayer>, engines: Engines, now: NIODeadline
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
            guard
                stream.input.spend(InputBudget.keyUpdateCost, settings.readerInput, now: now)
            else { return flood(layer, engines) }
            guard cipher.updateReceiving(layer) else {
                return refuse(.internalError, layer, engines)
            }
            // Without keys of our own not even an alert can be sent.
            return !answered || cipher.sealKeyUpdate(layer, to: wire) ? nil : .lost
        }
    }

    /// Ends a stream whose reader sends too much. RFC 8446 has no alert for that; other servers
    /// send this one.
    private func flood(
        _ layer: UnsafeMutablePointer<RecordLayer>, _ engines: Engines
    ) -> PeerEnd {
        counters.endStream(.flood)
        return refuse(.unexpectedMessage, layer, engines)
    }

    private func refuse(
        _ alert: Alert, _ layer: UnsafeMutablePointer<RecordLayer>, _ engines: Engines
    ) -> PeerEnd {
        engines.cipher.seal(alert, layer, to: engines.wire) ? .violation : .lost
    }

    private func discard(
        with ssl: OpaquePointer, on wire: MemoryBIO, of stream: TLSStream, bytes: Int,
        now: NIODeadline
    ) -> PeerEnd? {
        var cost = bytes
        let end = ReadPass.readRecords(ssl, wire) { _ in
            stream.recordsRead &+= 1
            cost += InputBudget.recordCost
        }
        switch end {
        case .closeNotify?: return .goodbye
        case .failed?: return .violation
        case nil:
            guard !stream.input.spend(cost, settings.readerInput, now: now) else { return nil }
            // There is no way to have OpenSSL send an alert for it.
            counters.endStream(.flood)
            SSL_shutdown(ssl)
            return .violation
        }
    }
}
