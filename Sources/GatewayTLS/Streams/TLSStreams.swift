import COpenSSL
import Glibc
import NIOCore

/// The TLS connections of one event loop that left their channels: the fast path for very many
/// held-open streams. A delivery seals one record and writes it to the socket; our code needs no
/// buffer, promise, pipeline or allocation for it.
///
/// A TLS 1.3 connection gives up OpenSSL's object, which takes more memory than the rest of it, and
/// keeps only a handful of keys (`RecordLayer`). All members are used on the loop only.
// Sound: `Sendable` is needed for the watcher's thread and for timers, which hop to the loop before
// they touch anything; every other use is on the loop already.
package final class TLSStreams: @unchecked Sendable {
    /// Callbacks to the streams' owner, each with the name that the owner gave the stream.
    package struct Owner {
        /// No bytes wait for the socket any more, after `send` returned `.queued`.
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

    /// The objects that all streams of the loop share to make and read records. They are held in
    /// one object, so that a delivery counts one reference.
    final class Engines {
        let wire: MemoryBIO
        let cipher: RecordCipher
        let watcher: StreamWatcher

        init(wire: MemoryBIO, cipher: RecordCipher, watcher: StreamWatcher) {
            self.wire = wire
            self.cipher = cipher
            self.watcher = watcher
        }
    }

    package let loop: any EventLoop
    let settings: TLSServerSettings
    let counters: TLSLoopCounters
    let owner: Owner
    /// Made with the first stream.
    private(set) var engines: Engines?
    private(set) var places = SlotTable<TLSStream>()
    /// The deadlines of streams that are closing, by their tokens.
    var closing: ExpiryQueue<UInt64>
    var closingTimer: Scheduled<Void>?
    private var whenEmpty: EventLoopPromise<Void>?
    /// Streams with something to read, by token, in the order in which they are read.
    var readable = CircularBuffer<UInt64>()
    /// The next read turn, while one is due.
    var readTimer: Scheduled<Void>?
    var nextReadTurn = NIODeadline.distantPast
    /// The deadlines of incomplete records, at most one for each stream.
    var recordDeadlines: ExpiryQueue<IncompleteRecord>
    var recordTimer: Scheduled<Void>?
    /// The buffer that sockets are read into and records are decrypted in.
    let input = UnsafeMutableRawBufferPointer.allocate(
        byteCount: MemoryBIO.recordContentBytesMax, alignment: 16)
    // Sound: allocated for the life of this object; lent only within `receive`.
    /// The number of streams, open or closing.
    package var count: Int { places.count }

    /// An object without streams. May be called on any thread.
    package init(loop: any EventLoop, settings: TLSServerSettings, owner: Owner) {
        self.loop = loop
        self.settings = settings
        self.owner = owner
        recordDeadlines = ExpiryQueue(ahead: settings.recordTimeout)
        closing = ExpiryQueue(ahead: settings.closeTimeout)
        counters = settings.counters.ofLoop(ObjectIdentifier(loop))
    }

    deinit { input.deallocate() }

    /// Adopts a connection that speaks HTTP/1.1 and has nothing left to send.
    ///
    /// - Returns: `nil` when the connection has been adopted before, when OpenSSL or the kernel
    ///   lacks memory or descriptors for the first stream, or when the kernel cannot watch its
    ///   socket; in the last case the connection is closed.
    package func adopt(_ connection: TLSConnection, name: UInt64) -> TLSStream? {
        loop.assertInEventLoop()
        guard let engines = engines ?? makeEngines(),
            let engine = connection.takeEngine(engines.wire)
        else { return nil }
        self.engines = engines
        let token = places.reserve()
        let stream = TLSStream(
            name: name, engine: engine, descriptor: connection.takeSocket(),
            permit: connection.takePermit(), place: UInt32(truncatingIfNeeded: token), now: .now())
        places[token] = stream
        guard engines.watcher.add(stream.descriptor, token: token) else {
            forget(stream)
            return nil
        }
        // The kernel must not buffer much for a reader that does not read, either.
        var size = settings.streamSendBufferBytes
        setsockopt(
            stream.descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        timeRecord(of: stream)
        return stream
    }

    private func makeEngines() -> Engines? {
        // The watcher's thread keeps this object alive until `stop`.
        guard let wire = MemoryBIO.ofThread(),
            let cipher = RecordCipher(recordsPerKeyMax: settings.recordsPerKeyMax),
            let watcher = try? StreamWatcher(tell: { news in self.loop.execute { self.take(news) } }
            )
        else { return nil }
        return Engines(wire: wire, cipher: cipher, watcher: watcher)
    }

    /// Succeeds once no stream is left.
    package func emptied() -> EventLoopFuture<Void> {
        loop.assertInEventLoop()
        let promise = whenEmpty ?? loop.makePromise()
        if count == 0 { promise.succeed() } else { whenEmpty = promise }
        return promise.futureResult
    }

    /// Closes every stream at once and stops watching sockets.
    package func stop() {
        loop.assertInEventLoop()
        for stream in places.occupants { forget(stream) }
        closingTimer?.cancel()
        readTimer?.cancel()
        recordTimer?.cancel()
        readable.removeAll()
        engines = nil
    }

    func token(of stream: TLSStream) -> UInt64 { places.token(at: stream.place) }

    func forget(_ stream: TLSStream) {
        stream.free()
        places.remove(token(of: stream))
        if count == 0 {
            whenEmpty?.succeed()
            whenEmpty = nil
        }
    }
}
