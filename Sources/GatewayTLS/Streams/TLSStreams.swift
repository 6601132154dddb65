import COpenSSL
import Glibc
import NIOCore

/// The TLS connections of one event loop that left their channels: the short way out for very many
/// held-open streams. A delivery seals one record and gives it to the socket: no buffer, promise,
/// pipeline or allocation of ours.
///
/// A TLS 1.3 connection gives up OpenSSL's object, which weighs more than everything else about it:
/// a handful of keys is left (`RecordLayer`). All members are used on the loop only.
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

    struct Place {
        var stream: TLSStream?
        /// Which of the streams that had the place: news may be of the one before.
        var serial: UInt32 = 0
    }

    /// What all streams of the loop share to make and read records. One object, so that a delivery
    /// counts one reference.
    final class Engines {
        let wire: TLSWire
        let cipher: RecordCipher
        let watcher: StreamWatcher

        init(wire: TLSWire, cipher: RecordCipher, watcher: StreamWatcher) {
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
    private(set) var places: [Place] = []
    private var freePlaces: [UInt32] = []
    /// Streams that are closing, with their deadlines: as all take the same time, in order.
    var closing: [(deadline: NIODeadline, place: UInt32, serial: UInt32)] = []
    var closingTimer: Scheduled<Void>?
    private var whenEmpty: EventLoopPromise<Void>?
    /// Streams with something to read, by token, in the order of their turns.
    var readable = CircularBuffer<UInt64>()
    /// The next turn of reading, while one is due.
    var readTimer: Scheduled<Void>?
    /// Incomplete records, at most one for each stream.
    var recordDeadlines: ExpiryQueue<IncompleteRecord>
    var recordTimer: Scheduled<Void>?
    /// Turns in which readers' bytes were read.
    var readTurns = 0
    /// What sockets are read into, and records opened in.
    let input = UnsafeMutableRawBufferPointer.allocate(
        byteCount: TLSWire.recordContentBytesMax, alignment: 16)
    // Sound: allocated for the life of this object; lent only within `receive`.
    /// Open or closing.
    package private(set) var count = 0

    /// No streams yet. May be called on any thread.
    package init(loop: any EventLoop, settings: TLSServerSettings, owner: Owner) {
        self.loop = loop
        self.settings = settings
        self.owner = owner
        recordDeadlines = ExpiryQueue(ahead: settings.recordTimeout)
        counters = settings.counters.ofLoop(ObjectIdentifier(loop))
    }

    deinit { input.deallocate() }

    /// Takes a connection that speaks HTTP/1.1, with nothing to send.
    ///
    /// - Returns: `nil` when it has been taken before, or the kernel does not watch its socket; then
    ///   it is closed.
    package func adopt(_ connection: TLSConnection, name: UInt64) -> TLSStream? {
        loop.assertInEventLoop()
        guard let engines = engines ?? makeEngines(),
            let engine = connection.takeEngine(engines.wire)
        else { return nil }
        self.engines = engines
        let place: UInt32
        if let free = freePlaces.popLast() {
            place = free
        } else {
            place = UInt32(clamping: places.count)
            places.append(Place())
        }
        let stream = TLSStream(
            name: name, engine: engine, descriptor: connection.takeSocket(),
            permit: connection.takePermit(), place: place, now: .now())
        places[Int(place)].stream = stream
        count += 1
        guard engines.watcher.add(stream.descriptor, token: token(of: stream)) else {
            forget(stream)
            return nil
        }
        // What a reader does not take must not grow in the kernel either.
        var size = settings.streamSendBufferBytes
        setsockopt(
            stream.descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        timeRecord(of: stream)
        return stream
    }

    private func makeEngines() -> Engines? {
        // Until `stop` the watcher's thread keeps this object.
        guard let wire = TLSWire.ofThread(),
            let cipher = RecordCipher(recordsPerKeyMax: settings.recordsPerKeyMax),
            let watcher = try? StreamWatcher(tell: { news in self.loop.execute { self.take(news) } }
            )
        else { return nil }
        return Engines(wire: wire, cipher: cipher, watcher: watcher)
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
        readTimer?.cancel()
        recordTimer?.cancel()
        readable.removeAll()
        engines = nil
    }

    func token(of stream: TLSStream) -> UInt64 {
        UInt64(places[Int(stream.place)].serial) << 32 | UInt64(stream.place)
    }

    /// The stream that a token was made for, unless it has gone.
    func stream(of token: UInt64) -> TLSStream? {
        let place = places[Int(truncatingIfNeeded: token & 0xFFFF_FFFF)]
        return place.serial == UInt32(truncatingIfNeeded: token >> 32) ? place.stream : nil
    }

    func forget(_ stream: TLSStream) {
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
}
