import CLinux
import COpenSSL
import Foundation
import Glibc
import NIOCore

/// One thread that accepts connections and performs TLS handshakes. Everything but its poller is
/// used on that thread only.
final class AcceptorLoop {
    /// Cannot be a connection's token: place numbers never get that high.
    private static let listenToken = Poller.wakeToken - 1
    private static let eventsMax = 256
    /// The most connections accepted per event; other threads may accept the rest of the queue.
    private static let acceptedMax = 16
    /// The time from the first connection that `passOn` has to be called for to that call.
    private static let gatheringTime = TimeAmount.milliseconds(5)
    /// The pause before trying again to accept, when no more connections fit.
    private static let fullPause = TimeAmount.milliseconds(20)

    let poller: Poller
    private let identity: TLSIdentity
    private let limit: ConnectionLimit
    let waits: @Sendable (String?) -> Bool
    private let reception: any Reception
    let settings: TLSServerSettings
    let wire: MemoryBIO
    let counters: TLSLoopCounters
    /// `nil` once stopping has begun.
    private var listening: ListeningSocket?
    private var isAccepting = false
    private var acceptsAgain = NIODeadline.distantPast
    /// The earliest time of the next report of a refusal: a report costs more than a refusal.
    private var reportsAgain = NIODeadline.distantPast
    private var places = SlotTable<PendingConnection>()
    /// The time at which `passOn` is due on the reception; `nil` when it has nothing to pass on.
    private var passingDue: NIODeadline?
    /// The time at which the last wait ended.
    var now = NIODeadline.now()
    /// The deadlines of each phase, by the tokens of their connections.
    private var handshakes: ExpiryQueue<UInt64>
    var requests: ExpiryQueue<UInt64>
    var closings: ExpiryQueue<UInt64>
    /// The buffer that sockets are read into.
    let input = UnsafeMutableRawBufferPointer.allocate(
        byteCount: MemoryBIO.recordContentBytesMax, alignment: 16)
    // Sound: allocated for the life of this object; lent only within `receive`.

    /// Starts a thread, which calls `onEnd` when it ends. Returns the thread's poller, whose `wake`
    /// stops the loop. Throws `TLSError` (`engine`) when the kernel provides no descriptors.
    static func start(
        on socket: ListeningSocket, identity: TLSIdentity, settings: TLSServerSettings,
        limit: ConnectionLimit, waits: @escaping @Sendable (String?) -> Bool,
        reception: @escaping @Sendable () -> any Reception, onEnd: @escaping @Sendable () -> Void
    ) throws(TLSError) -> Poller {
        let poller = try Poller(for: "TLS handshakes")
        let thread = Thread {
            gateway_name_thread("arrivals")
            AcceptorLoop(
                poller: poller, socket: socket, identity: identity, settings: settings,
                limit: limit, waits: waits, reception: reception())?
                .run()
            onEnd()
        }
        thread.stackSize = 512 * 1024
        thread.start()
        return poller
    }

    private init?(
        poller: Poller, socket: ListeningSocket, identity: TLSIdentity,
        settings: TLSServerSettings, limit: ConnectionLimit,
        waits: @escaping @Sendable (String?) -> Bool, reception: any Reception
    ) {
        guard let wire = MemoryBIO.ofThread() else { return nil }
        (self.poller, self.wire) = (poller, wire)
        (self.identity, self.settings, self.limit) = (identity, settings, limit)
        (self.waits, self.reception) = (waits, reception)
        listening = socket
        handshakes = ExpiryQueue(ahead: settings.handshakeTimeout)
        requests = ExpiryQueue(ahead: settings.firstRequestTimeout)
        closings = ExpiryQueue(ahead: settings.closeTimeout)
        counters = settings.counters.ofLoop(ObjectIdentifier(poller))
    }

    deinit { input.deallocate() }

    private func run() {
        var events = [epoll_event](repeating: epoll_event(), count: Self.eventsMax)
        while listening != nil || places.count > 0 {
            acceptOrPause()
            guard let ready = poller.wait(upTo: waitMilliseconds(), into: &events) else { return }
            now = .now()
            lookAtAll(ready)
            endOverdue()
            if let due = passingDue, now >= due { passOn() }
        }
        passOn()
    }

    private func passOn() {
        guard passingDue != nil else { return }
        passingDue = nil
        reception.passOn()
    }

    private func lookAtAll(_ events: ArraySlice<epoll_event>) {
        guard let onTurn = settings.onArrivalTurn, !events.isEmpty else {
            for event in events { look(at: event) }
            return
        }
        var began = gateway_thread_cpu_nanoseconds()
        for event in events {
            look(at: event)
            let ended = gateway_thread_cpu_nanoseconds()
            onTurn(ended - began)
            began = ended
        }
    }

    private func look(at event: epoll_event) {
        switch event.data.u64 {
        case Self.listenToken: accept()
        case Poller.wakeToken: beginStopping()
        case let token:
            guard let arrival = places[token] else { return }
            if event.events & EPOLLOUT.rawValue != 0 { sendRest(arrival) } else { receive(arrival) }
        }
    }

    // MARK: Accepting

    /// Asks the kernel to report new connections, unless accepting is paused or has ended.
    private func acceptOrPause() {
        guard let listening, !isAccepting, now >= acceptsAgain else { return }
        // One connection wakes one thread.
        let interest = EPOLLIN.rawValue | EPOLLEXCLUSIVE.rawValue
        isAccepting = poller.add(listening.descriptor, for: interest, token: Self.listenToken)
        if !isAccepting { acceptsAgain = now + Self.fullPause }
    }

    /// Counts a refusal, and reports it unless another one was reported just now.
    func refuse(_ reason: ConnectionRefusal, _ address: SourceAddress? = nil) {
        counters.refuseConnection(reason)
        guard now >= reportsAgain else { return }
        reportsAgain = now + Self.fullPause
        settings.onRefusal?(reason, address)
    }

    private func pause() {
        guard let listening, isAccepting else { return }
        isAccepting = false
        acceptsAgain = now + Self.fullPause
        poller.remove(listening.descriptor)
    }

    private func accept() {
        guard let listening, isAccepting else { return }
        for _ in 0..<Self.acceptedMax {
            // Reserve a place before accepting: several threads must not all take the last one.
            guard limit.take() else {
                refuse(.connections)
                return pause()
            }
            let (socket, peer) = accept(from: listening.descriptor)
            if socket >= 0 {
                begin(socket, peer)
                continue
            }
            limit.release()
            switch errno {
            case EAGAIN, EWOULDBLOCK: return
            // Out of descriptors or memory: an open connection has to end first.
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                refuse(.files)
                return pause()
            // The peer has already gone (accept(2)).
            default: continue
            }
        }
    }

    /// Accepts one connection. Returns its socket, or -1 when there is none, and its peer.
    private func accept(from listener: Int32) -> (Int32, TLSPeer) {
        var storage = sockaddr_storage()
        var bytes = UInt32(MemoryLayout<sockaddr_storage>.size)
        // Sound: the kernel writes at most `bytes` bytes; the pointer does not leave the closure.
        return withUnsafeMutableBytes(of: &storage) { storage in
            let socket = gateway_accept(
                listener, storage.baseAddress, &bytes, O_CLOEXEC | O_NONBLOCK)
            guard socket >= 0 else { return (socket, TLSPeer(.unknown)) }
            let address = SourceAddress.ip(
                in: UnsafeRawBufferPointer(rebasing: storage.prefix(Int(bytes))))
            let proxyProtocol = settings.proxyProtocol.flatMap { $0(address) }
            return (socket, TLSPeer(SourceAddress(ip: address), proxyProtocol))
        }
    }

    private func begin(_ socket: Int32, _ peer: TLSPeer) {
        // A proxy has as many connections as its clients together.
        let address = peer.proxyProtocol == nil ? peer.address : nil
        guard let permit = limit.permit(for: address) else {
            refuse(.address, address)
            Glibc.close(socket)
            limit.release()
            return
        }
        let connection = TLSConnection(
            identity.current, socket: socket, from: peer, permit: permit,
            offersHTTP2: settings.offersHTTP2)
        guard let connection else {
            ERR_clear_error()
            Glibc.close(socket)
            permit.release()
            return
        }
        connection.use(wire)
        let token = places.reserve()
        let arrival = PendingConnection(
            connection, token: token, deadline: handshakes.set(token, now: now), now: now)
        places[token] = arrival
        guard poller.add(socket, for: EPOLLIN.rawValue, token: token) else {
            return forget(arrival)
        }
    }

    // MARK: Places

    /// Frees the connection's place. The connection continues elsewhere, or is closed with its last
    /// reference.
    func forget(_ arrival: PendingConnection) { places.remove(arrival.token) }

    /// Hands the connection to the reception, which owns it from then on.
    func handOn(_ arrival: PendingConnection, _ first: ReadPass) {
        poller.remove(arrival.connection.socket)
        let isLeft = reception.take(
            Arrived(connection: arrival.connection, first: first, requestDue: arrival.deadline))
        if isLeft, passingDue == nil { passingDue = now + Self.gatheringTime }
        forget(arrival)
    }

    // MARK: Time

    private func isSet(_ token: UInt64, _ deadline: NIODeadline) -> Bool {
        places[token]?.deadline == deadline
    }

    private func waitMilliseconds() -> Int32 {
        var next = passingDue
        for due in [handshakes.next(isSet), requests.next(isSet), closings.next(isSet)] {
            if let due { next = min(next ?? due, due) }
        }
        if listening != nil, !isAccepting { next = min(next ?? acceptsAgain, acceptsAgain) }
        guard let next else { return -1 }
        let left = next - .now()
        // Rounded up: otherwise the loop would spin until a deadline less than 1 ms away has
        // passed.
        return left <= .zero ? 0 : Int32(clamping: left.nanoseconds / 1_000_000 + 1)
    }

    private func endOverdue() {
        while let arrival = takeOverdue(&handshakes) {
            noteFailure(of: arrival, .timeout, "the handshake was not done in time")
            forget(arrival)
        }
        while let arrival = takeOverdue(&requests) { sayGoodbye(arrival) }
        while let arrival = takeOverdue(&closings) { forget(arrival) }
    }

    private func takeOverdue(_ deadlines: inout ExpiryQueue<UInt64>) -> PendingConnection? {
        deadlines.takePassed(now: now, isSet).flatMap { places[$0] }
    }

    // MARK: Stopping

    private func beginStopping() {
        pause()
        listening = nil
        for arrival in places.occupants {
            switch arrival.phase {
            case .proxyHeader, .handshaking: forget(arrival)
            case .open: sayGoodbye(arrival)
            case .closing: break
            }
        }
    }
}
