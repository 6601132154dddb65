import NIOCore
import Synchronization

/// A connection whose handshake is done and whose peer has shown what it wants.
package struct Arrived: Sendable {
    /// The connection, for whoever takes it.
    package let connection: TLSConnection
    /// What the peer said so far, and whether that was all.
    let first: ReadPass
    /// When its first request has to be there.
    package let requestDue: NIODeadline

    /// What the peer said so far; `nil` for HTTP/2, whose client may wait for us, and where the
    /// peer has said all it will.
    package var firstBytes: ByteBuffer? { first.end == nil ? first.plaintext : nil }
}

/// Takes the connections that one thread of `Arrivals` hands on.
package protocol Reception: AnyObject {
    /// Takes a connection. Answers whether `passOn` has to be called for it.
    func take(_ arrived: Arrived) -> Bool

    /// Does what is done for several at once, because each time costs two changes of thread: called
    /// a few milliseconds after the first `take` that asked for it.
    func passOn()
}

/// The connections of a listener from their first byte to their first request.
///
/// Threads of its own accept them and shake hands, so that a storm of handshakes, of which each
/// takes a thousand times what a delivery takes, keeps no event loop from its streams; and a
/// connection that comes for an event stream never costs a channel.
package final class Arrivals: Sendable {
    private let socket: ListeningSocket
    private let loops: [ArrivalLoop.Handle]
    private let end: ArrivalsEnd

    /// Begins to accept connections.
    ///
    /// - Parameters:
    ///   - threads: How many threads share the work.
    ///   - waits: Whether a connection of an application protocol, as ALPN chose it, is handed on
    ///     with the peer's first bytes; otherwise it is with the end of the handshake.
    ///   - reception: Makes what takes the connections of a thread; called on that thread.
    /// - Throws: `TLSError` of code `engine` when the kernel or OpenSSL gives no means.
    package init(
        _ socket: ListeningSocket, identity: TLSIdentity, settings: TLSServerSettings,
        limit: ConnectionLimit, threads: Int, waits: @escaping @Sendable (String?) -> Bool,
        reception: @escaping @Sendable () -> any Reception
    ) throws(TLSError) {
        let end = ArrivalsEnd(threads: threads)
        var loops: [ArrivalLoop.Handle] = []
        for _ in 0..<threads {
            do throws(TLSError) {
                loops.append(
                    try ArrivalLoop.start(
                        socket, identity, settings, limit, waits: waits, reception,
                        onEnd: { end.oneEnded() }))
            } catch {
                for loop in loops { loop.stop() }
                throw error
            }
        }
        (self.socket, self.loops, self.end) = (socket, loops, end)
    }

    /// Accepts nothing more, and ends what has shown no wish yet: in order where the handshake is
    /// done, within the time that settings give a close.
    package func stop() {
        socket.stopListening()
        for loop in loops { loop.stop() }
    }

    /// Returns when it was stopped and nothing is left of it.
    package func ended() async { await end.wait() }
}

/// Knows when all threads have ended.
private final class ArrivalsEnd: Sendable {
    private struct State {
        var running: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(threads: Int) { state = Mutex(State(running: threads)) }

    func oneEnded() {
        let waiting = state.withLock { state in
            state.running -= 1
            guard state.running == 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for one in waiting { one.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.running > 0 { state.waiting.append(continuation) }
                return state.running == 0
            }
            if isOver { continuation.resume() }
        }
    }
}
