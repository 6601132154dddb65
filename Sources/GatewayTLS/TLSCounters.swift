import Synchronization

/// The TLS listener's counts since its start.
package struct TLSCounts: Equatable, Sendable {
    /// Handshakes done with a full key exchange and certificate.
    package var handshakesFull = 0
    /// Handshakes done by resuming a session from a ticket.
    package var handshakesResumed = 0
    /// Handshakes that ended without a connection, by reason.
    package var handshakesFailed = zeros(HandshakeFailure.self)
    /// Connections closed as soon as they were accepted, or pauses of a thread, by reason.
    package var connectionsRefused = zeros(ConnectionRefusal.self)
    /// Connections closed because of what their peers sent after the handshake, by reason.
    package var connectionsEnded = zeros(PeerViolation.self)
    /// Streams ended because of their readers' input, by reason.
    package var streamsEnded = zeros(ReaderViolation.self)
    /// Ciphertext bytes written straight to sockets: for handshakes, and for streams without a
    /// channel.
    package var bytesSentDirectly = 0
    /// Ciphertext bytes handed to NIO.
    package var bytesSentByNIO = 0

    package init() {}

    /// Returns a count of 0 for every reason.
    private static func zeros<Reason: CaseIterable & Hashable>(_: Reason.Type) -> [Reason: Int] {
        Dictionary(uniqueKeysWithValues: Reason.allCases.map { ($0, 0) })
    }
}

/// The counters of all threads of one listener. Read from any thread.
package final class TLSCounters: Sendable {
    private let loops = Mutex<[ObjectIdentifier: TLSLoopCounters]>([:])

    /// Counters that are all zero.
    package init() {}

    /// Returns the counters of one thread, identified by the object that runs on it; makes them on
    /// first use.
    func ofLoop(_ loop: ObjectIdentifier) -> TLSLoopCounters {
        loops.withLock { loops in
            if let known = loops[loop] { return known }
            let made = TLSLoopCounters()
            loops[loop] = made
            return made
        }
    }

    /// Returns the sums over all threads. Each number is exact, but they are not read at one
    /// instant.
    package func snapshot() -> TLSCounts {
        let all = loops.withLock { Array($0.values) }
        var sum = TLSCounts()
        for one in all {
            let ends = one.ends.withLock { $0 }
            sum.handshakesFailed.merge(ends.handshakesFailed, uniquingKeysWith: +)
            sum.connectionsRefused.merge(ends.connectionsRefused, uniquingKeysWith: +)
            sum.connectionsEnded.merge(ends.connectionsEnded, uniquingKeysWith: +)
            sum.streamsEnded.merge(ends.streamsEnded, uniquingKeysWith: +)
            sum.handshakesFull += one.full.load(ordering: .relaxed)
            sum.handshakesResumed += one.resumed.load(ordering: .relaxed)
            sum.bytesSentDirectly += one.direct.load(ordering: .relaxed)
            sum.bytesSentByNIO += one.byNIO.load(ordering: .relaxed)
        }
        return sum
    }
}

/// The counters of one thread: written by that thread only, read by any.
final class TLSLoopCounters: Sendable {
    let full = Atomic<Int>(0)
    let resumed = Atomic<Int>(0)
    let direct = Atomic<Int>(0)
    let byNIO = Atomic<Int>(0)
    /// The counts of ends and refusals: rare, so a lock is good enough.
    fileprivate let ends = Mutex(TLSCounts())

    /// Adds to one counter. With a single writer a load and a store suffice, without a bus lock per
    /// delivery.
    @inline(__always)
    static func add(_ amount: Int, to counter: borrowing Atomic<Int>) {
        counter.store(counter.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    func done(resumed isResumed: Bool) {
        if isResumed { Self.add(1, to: resumed) } else { Self.add(1, to: full) }
    }

    func failed(_ reason: HandshakeFailure) {
        ends.withLock { $0.handshakesFailed[reason, default: 0] += 1 }
    }

    func refuseConnection(_ reason: ConnectionRefusal) {
        ends.withLock { $0.connectionsRefused[reason, default: 0] += 1 }
    }

    func endConnection(_ reason: PeerViolation) {
        ends.withLock { $0.connectionsEnded[reason, default: 0] += 1 }
    }

    func endStream(_ reason: ReaderViolation) {
        ends.withLock { $0.streamsEnded[reason, default: 0] += 1 }
    }
}
