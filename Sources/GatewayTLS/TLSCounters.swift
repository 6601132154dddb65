import Synchronization

/// The TLS listener's counts since its start.
package struct TLSCounts: Equatable, Sendable {
    /// Handshakes done with a full key exchange and certificate.
    package var handshakesFull = 0
    /// Handshakes done by resuming a session from a ticket.
    package var handshakesResumed = 0
    /// Handshakes that ended without a connection, by reason; every reason is present.
    package var handshakesFailed: [HandshakeFailure: Int] = [:]
    /// Connections closed as soon as they were accepted, by reason; every reason is present.
    package var connectionsRefused: [ConnectionRefusal: Int] = [:]
    /// Streams ended because of their readers' input, by reason; every reason is present.
    package var streamsEnded: [ReaderViolation: Int] = [:]
    /// Ciphertext bytes written straight to sockets: for handshakes, and for streams without a
    /// channel.
    package var bytesSentDirectly = 0
    /// Ciphertext bytes handed to NIO.
    package var bytesSentByNIO = 0

    package init() {}
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
        for reason in HandshakeFailure.allCases {
            sum.handshakesFailed[reason] = all.reduce(0) { $0 + $1.failures(reason) }
        }
        for reason in ConnectionRefusal.allCases {
            sum.connectionsRefused[reason] = all.reduce(0) { $0 + $1.refusals(reason) }
        }
        for reason in ReaderViolation.allCases {
            sum.streamsEnded[reason] = all.reduce(0) { $0 + $1.ended(reason) }
        }
        for one in all {
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
    private let plainHTTP = Atomic<Int>(0)
    private let version = Atomic<Int>(0)
    private let alpn = Atomic<Int>(0)
    private let timeout = Atomic<Int>(0)
    private let certificate = Atomic<Int>(0)
    private let other = Atomic<Int>(0)
    private let address = Atomic<Int>(0)
    private let flood = Atomic<Int>(0)
    private let incompleteRecord = Atomic<Int>(0)

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
        switch reason {
        case .plainHTTP: Self.add(1, to: plainHTTP)
        case .version: Self.add(1, to: version)
        case .alpn: Self.add(1, to: alpn)
        case .timeout: Self.add(1, to: timeout)
        case .certificate: Self.add(1, to: certificate)
        case .other: Self.add(1, to: other)
        }
    }

    func refuseConnection(_ reason: ConnectionRefusal) {
        switch reason {
        case .address: Self.add(1, to: address)
        }
    }

    func refusals(_ reason: ConnectionRefusal) -> Int {
        switch reason {
        case .address: address.load(ordering: .relaxed)
        }
    }

    func endStream(_ reason: ReaderViolation) {
        switch reason {
        case .flood: Self.add(1, to: flood)
        case .incompleteRecord: Self.add(1, to: incompleteRecord)
        }
    }

    func ended(_ reason: ReaderViolation) -> Int {
        switch reason {
        case .flood: flood.load(ordering: .relaxed)
        case .incompleteRecord: incompleteRecord.load(ordering: .relaxed)
        }
    }

    func failures(_ reason: HandshakeFailure) -> Int {
        switch reason {
        case .plainHTTP: plainHTTP.load(ordering: .relaxed)
        case .version: version.load(ordering: .relaxed)
        case .alpn: alpn.load(ordering: .relaxed)
        case .timeout: timeout.load(ordering: .relaxed)
        case .certificate: certificate.load(ordering: .relaxed)
        case .other: other.load(ordering: .relaxed)
        }
    }
}
