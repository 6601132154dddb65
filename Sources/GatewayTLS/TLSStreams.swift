import COpenSSL
import Glibc
import NIOCore

/// The TLS connections of one event loop that left their channels: the short way out for very many
/// held-open streams. A delivery seals one record and gives it to the socket: no buffer, promise,
/// pipeline or allocation of ours.
///
/// All members are used on the loop only.
// Sound: `Sendable` is needed for the watcher's thread and for timers, which hop to the loop before
// they touch anything; every other use is on the loop already.
package final class TLSStreams: @unchecked Sendable {
    /// What a stream's owner is told, with the name it gave.
    package struct Owner {
        /// Nothing waits behind the socket any more, after `send` answered `.queued`.
        package let drained: (UInt64) -> Void
        /// The peer ended the stream or broke the protocol. Not called after `end` or `close`.
        package let ended: (UInt64) -> Void

        /// Both are called on the loop, never from within `send`, `end` or `close`.
        package init(
            drained: @escaping (UInt64) -> Void, ended: @escaping (UInt64) -> Void
        ) {
            self.drained = drained
            self.ended = ended
        }
    }

    private struct Place {
        var stream: TLSStream?
        /// Which of the streams that had the place: news may be of the one before.
        var serial: UInt32 = 0
    }

    package let loop: any EventLoop
    let settings: TLSServerSettings
    let counters: TLSLoopCounters
    let owner: Owner
    private var watcher: StreamWatcher?
    private var wire: TLSWire?
    private var places: [Place] = []
    private var freePlaces: [UInt32] = []
    /// Streams that are closing, with their deadlines: as all take the same time, in order.
    private var closing: [(deadline: NIODeadline, place: UInt32, serial: UInt32)] = []
    private var closingTimer: Scheduled<Void>?
    private var whenEmpty: EventLoopPromise<Void>?
    /// What sockets are read into.
    private let input = UnsafeMutableRawBufferPointer.allocate(
        byteCount: TLSWire.recordContentBytesMax, alignment: 16)
    // Sound: allocated for the life of this object; lent to OpenSSL only within `takeInput`.
    /// Open or closing.
    package private(set) var count = 0

    /// No streams yet. May be called on any thread.
    package init(loop: any EventLoop, settings: TLSServerSettings, owner: Owner) {
        self.loop = loop
        self.settings = settings
        self.owner = owner
        counters = settings.counters.ofLoop(ObjectIdentifier(loop))
    }

    deinit { input.deallocate() }

    // MARK: Coming and going

    /// Takes an HTTP/1.1 connection out of its channel, which closes without a word to the peer.
    ///
    /// - Returns: `nil` when the connection is not open, belongs to HTTP/2, has something queued, or
    ///   the kernel gives no descriptor; then it stays with its channel. Also when the kernel does
    ///   not watch the socket; then the connection is closed.
    package func adopt(_ handler: TLSServerHandler, name: UInt64) -> TLSStream? {
        loop.assertInEventLoop()
        guard handler.isDetachable, let wire = wire ?? TLSWire.ofThread(),
            let watcher = watcher ?? startWatcher(),
            let (ssl, descriptor) = handler.detach()
        else { return nil }
        self.wire = wire
        let place: UInt32
        if let free = freePlaces.popLast() {
            place = free
        } else {
            place = UInt32(clamping: places.count)
            places.append(Place())
        }
        let stream = TLSStream(name: name, ssl: ssl, descriptor: descriptor, place: place)
        places[Int(place)].stream = stream
        count += 1
        guard watcher.add(descriptor, token: token(of: stream)) else {
            forget(stream)
            return nil
        }
        // What a reader does not take must not grow in the kernel either.
        var size = settings.streamSendBufferBytes
        setsockopt(
            descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        return stream
    }

    private func startWatcher() -> StreamWatcher? {
        // Until `stop` the thread keeps this object.
        watcher = try? StreamWatcher { news in self.loop.execute { self.take(news) } }
        return watcher
    }

    /// Ends a stream in order: `farewell` and `close_notify`, then the socket when the peer has
    /// ended its side, at the latest after `closeTimeout`.
    package func end(_ stream: TLSStream, farewell: UnsafeRawBufferPointer) {
        loop.assertInEventLoop()
        guard stream.phase == .open, let wire else { return }
        wire.begin()
        if farewell.isEmpty || RecordSealing.seal(farewell, stream.ssl) {
            ERR_clear_error()
            SSL_shutdown(stream.ssl)
        }
        leave(stream, wire)
    }

    /// Ends a stream at once.
    package func close(_ stream: TLSStream) {
        loop.assertInEventLoop()
        guard stream.phase != .closed else { return }
        forget(stream)
    }

    /// Succeeds as soon as no stream is left.
    package func emptied() -> EventLoopFuture<Void> {
        loop.assertInEventLoop()
        let promise = whenEmpty ?? loop.makePromise()
        if count == 0 { promise.succeed() } else { whenEmpty = promise }
        return promise.futureResult
    }

    /// Ends every stream at once and watches no longer.
    package func stop() {
        loop.assertInEventLoop()
        for place in places { if let stream = place.stream { forget(stream) } }
        closingTimer?.cancel()
        watcher = nil
    }

    private func token(of stream: TLSStream) -> UInt64 {
        UInt64(places[Int(stream.place)].serial) << 32 | UInt64(stream.place)
    }

    private func forget(_ stream: TLSStream) {
        stream.free()
        places[Int(stream.place)].stream = nil
        places[Int(stream.place)].serial &+= 1
        freePlaces.append(stream.place)
        count -= 1
        if count == 0 {
            whenEmpty?.succeed()
            whenEmpty = nil
        }
    }

    // MARK: Sending

    /// Seals `plaintext` into as few records as possible and gives them to the socket.
    ///
    /// With nothing queued it makes no allocation of ours. `.refused` says that the stream is over,
    /// or that more than `queuedBytesMax` waits; the owner closes it then.
    package func send(_ plaintext: UnsafeRawBufferPointer, to stream: TLSStream) -> StreamWrite {
        guard stream.phase == .open, let wire else { return .refused }
        guard !plaintext.isEmpty else { return stream.backlog == nil ? .sent : .queued }
        if let backlog = stream.backlog,
            backlog.left + plaintext.count > settings.queuedBytesMax
        {
            return .refused
        }
        wire.begin()
        defer { wire.finish() }
        guard RecordSealing.seal(plaintext, stream.ssl) else {
            // Nothing can follow a record that was not made.
            ERR_clear_error()
            return .refused
        }
        if stream.backlog != nil {
            queue(wire.output, on: stream)
            return .queued
        }
        let ciphertext = wire.output
        let sent = Self.send(ciphertext, stream.descriptor)
        if sent > 0 { TLSLoopCounters.add(sent, to: counters.direct) }
        if sent == ciphertext.count { return .sent }
        guard sent >= 0 else { return .refused }
        queue(UnsafeRawBufferPointer(rebasing: ciphertext[sent...]), on: stream)
        return .queued
    }

    /// The bytes the kernel took: all, some or none; -1 when the connection is gone.
    @inline(__always)
    private static func send(_ bytes: UnsafeRawBufferPointer, _ descriptor: Int32) -> Int {
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

    private func queue(_ bytes: UnsafeRawBufferPointer, on stream: TLSStream) {
        if stream.backlog == nil {
            stream.backlog = TLSStream.Backlog(bytes: Array(bytes))
        } else {
            stream.backlog?.bytes.append(contentsOf: bytes)
        }
        guard !stream.isWatchedForRoom else { return }
        stream.isWatchedForRoom = true
        _ = watcher?.watchRoom(stream.descriptor, token: token(of: stream))
    }

    /// Sends what waits; answers whether the connection lives.
    private func flush(_ stream: TLSStream) -> Bool {
        while let backlog = stream.backlog {
            let sent = backlog.bytes.withUnsafeBytes {
                Self.send(
                    UnsafeRawBufferPointer(rebasing: $0[backlog.sent...]), stream.descriptor)
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

    // MARK: News

    private func take(_ news: [StreamWatcher.News]) {
        for one in news {
            let place = places[Int(truncatingIfNeeded: one.token & 0xFFFF_FFFF)]
            guard place.serial == UInt32(truncatingIfNeeded: one.token >> 32),
                let stream = place.stream
            else { continue }
            if one.isWritable, stream.phase != .closed { takeRoom(stream) }
            if one.isReadable, stream.phase != .closed { takeInput(stream) }
        }
    }

    private func takeRoom(_ stream: TLSStream) {
        guard stream.backlog != nil else { return }
        guard flush(stream) else { return lose(stream) }
        guard stream.backlog == nil else { return }
        switch stream.phase {
        case .open: owner.drained(stream.name)
        case .closing: shutdown(stream.descriptor, Int32(SHUT_WR))
        case .closed: break
        }
    }

    /// Reads and throws away what the reader says, but for what TLS itself has to know.
    private func takeInput(_ stream: TLSStream) {
        // A peer that never stops talking must not keep the loop from its other streams.
        for _ in 0..<4 {
            let count = recv(stream.descriptor, input.baseAddress, input.count, Int32(MSG_DONTWAIT))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return }
            guard count > 0 else { return lose(stream) }
            // Once we have said goodbye, only the end itself is waited for.
            guard stream.phase == .open else { continue }
            take(UnsafeRawBufferPointer(rebasing: input[..<count]), stream)
            if stream.phase == .closed { return }
        }
        loop.assumeIsolated().execute { if stream.phase != .closed { self.takeInput(stream) } }
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ stream: TLSStream) {
        guard let wire else { return }
        wire.begin(input: bytes)
        let end = discard(stream.ssl, wire)
        let answer = wire.output
        if !answer.isEmpty, end == nil {
            var sent = 0
            if stream.backlog == nil { sent = max(0, Self.send(answer, stream.descriptor)) }
            if sent < answer.count {
                queue(UnsafeRawBufferPointer(rebasing: answer[sent...]), on: stream)
                stream.backlog?.answers += answer.count - sent
            }
        }
        switch end {
        case nil:
            wire.finish()
            if (stream.backlog?.answers ?? 0) > settings.unreadAnswersBytesMax { lose(stream) }
        case .goodbye:
            SSL_shutdown(stream.ssl)
            leave(stream, wire)
            owner.ended(stream.name)
        case .violation:
            // The alert is in the wire already.
            leave(stream, wire)
            owner.ended(stream.name)
        }
    }

    private enum PeerEnd {
        case goodbye
        case violation
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

    // MARK: Closing

    /// Sends what is in the wire as the stream's last words and gives the wire back. The socket
    /// closes when the peer has ended its side: closing it at once could destroy what is under way,
    /// because the kernel answers unread input with a reset.
    private func leave(_ stream: TLSStream, _ wire: TLSWire) {
        stream.phase = .closing
        let last = wire.output
        var sent = 0
        if stream.backlog == nil { sent = max(0, Self.send(last, stream.descriptor)) }
        if sent < last.count {
            queue(UnsafeRawBufferPointer(rebasing: last[sent...]), on: stream)
        }
        wire.finish()
        if stream.backlog == nil { shutdown(stream.descriptor, Int32(SHUT_WR)) }
        closing.append(
            (.now() + settings.closeTimeout, stream.place, places[Int(stream.place)].serial))
        setClosingTimer()
    }

    /// The connection is gone, or its peer is not to be talked to any longer.
    private func lose(_ stream: TLSStream) {
        let wasOpen = stream.phase == .open
        forget(stream)
        if wasOpen { owner.ended(stream.name) }
    }

    private func setClosingTimer() {
        guard closingTimer == nil, let first = closing.first else { return }
        closingTimer = loop.assumeIsolated().scheduleTask(deadline: first.deadline) {
            self.closingTimer = nil
            self.closeOverdue()
        }
    }

    private func closeOverdue() {
        let now = NIODeadline.now()
        let due = closing.prefix { $0.deadline <= now }
        for (_, place, serial) in due where places[Int(place)].serial == serial {
            if let stream = places[Int(place)].stream { forget(stream) }
        }
        closing.removeFirst(due.count)
        setClosingTimer()
    }
}
