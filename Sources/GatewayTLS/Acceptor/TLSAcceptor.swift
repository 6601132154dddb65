import NIOCore
import Synchronization

/// A connection whose handshake is done and whose application protocol is known.
package struct Arrived: Sendable {
    /// The connection; whoever accepts this value owns it.
    package let connection: TLSConnection
    /// The result of the reads so far: the peer's plaintext, and whether the peer has ended.
    let first: ReadPass
    /// The deadline for its first request.
    package let requestDue: NIODeadline

    /// The plaintext received so far. `nil` when there is none, which is normal for HTTP/2, whose
    /// client may wait for the server, and when the peer has already ended.
    package var firstBytes: ByteBuffer? { first.end == nil ? first.plaintext : nil }
}

/// Accepts the connections that one thread of `TLSAcceptor` hands on.
package protocol Reception: AnyObject {
    /// Accepts a connection. Returns whether `passOn` has to be called for it.
    func take(_ arrived: Arrived) -> Bool

    /// Passes on several connections at once, because each time costs two thread switches. Called a
    /// few milliseconds after the first `take` that returned true.
    func passOn()
}

/// The connections of a listener, from their first byte to their first request.
///
/// Dedicated threads accept them and perform handshakes. A handshake takes about 0.4 ms of CPU, a
/// delivery 7 to 11 µs, so a storm of handshakes must not keep an event loop from its streams. A
/// connection that begins with an event stream never costs a channel.
package final class TLSAcceptor: Sendable {
    private let socket: ListeningSocket
    private let loops: [Poller]
    private let end: AcceptorsEnd

    /// Begins to accept connections.
    ///
    /// - Parameters:
    ///   - threads: The number of threads that share the work.
    ///   - waits: Whether a connection with the given application protocol, as ALPN chose it, is
    ///     handed on with the peer's first bytes; otherwise it is handed on at the end of the
    ///     handshake.
    ///   - reception: Makes the reception for the connections of one thread; called on that
    ///     thread.
    /// - Throws: `TLSError` of code `engine` when the kernel provides no descriptors.
    package init(
        _ socket: ListeningSocket, identity: TLSIdentity, settings: TLSServerSettings,
        limit: ConnectionLimit, threads: Int, waits: @escaping @Sendable (String?) -> Bool,
        reception: @escaping @Sendable () -> any Reception
    ) throws(TLSError) {
        let end = AcceptorsEnd(threads: threads)
        var loops: [Poller] = []
        for _ in 0..<threads {
            do throws(TLSError) {
                loops.append(
                    try AcceptorLoop.start(
                        on: socket, identity: identity, settings: settings, limit: limit,
                        waits: waits, reception: reception, onEnd: { end.oneEnded() }))
            } catch {
                for loop in loops { loop.wake() }
                throw error
            }
        }
        (self.socket, self.loops, self.end) = (socket, loops, end)
    }

    /// Stops accepting, and ends the connections that have not been handed on. Those whose
    /// handshake is done end with `close_notify`, within `closeTimeout`.
    package func stop() {
        socket.stopListening()
        for loop in loops { loop.wake() }
    }

    /// Returns once all threads have ended after `stop`.
    package func ended() async { await end.wait() }
}

/// Waits for all threads to end.
private final class AcceptorsEnd: Sendable {
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
